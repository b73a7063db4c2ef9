// Package options reads what a client may configure a container's shim with:
// the options of runc's shim, the table that containerd's CRI passes on for any
// other runtime name, and this shim's own.
//
// It also keeps them in a bundle, for the delete that comes after a crash. It
// reads and writes the files it is told to and nothing else.
package options
