// Package sysnum knows the number of every system call on every architecture that the OCI runtime
// spec names.
//
// The tables (tables.go) are made by gen from the kernel's own syscall tables; none of it is typed
// in. They are string constants: looking a name up is a binary search over read-only data, and
// nothing is built when a program starts, for every container pays for that.
package sysnum
