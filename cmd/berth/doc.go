// Berth runs OCI containers. See berth --help.
package main
