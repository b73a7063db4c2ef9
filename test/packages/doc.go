// Package packages tests what build/scripts/dist makes: that it is whole, that the programs in it
// are static and run on the machines that they are for, and that a package which is installed, used
// and purged leaves nothing.
package packages
