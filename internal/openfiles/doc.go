// Package openfiles knows the limit of open files that this process was started
// with. Package syscall raises the soft one in its initialiser, since Go does not
// use select(2), and keeps what it was to itself; what we start is to have the
// caller's.
//
// It must import nothing: packages that import nothing are initialised in the
// order of their paths, before those that import something, so that this one
// looks before package syscall changes anything.
package openfiles
