// Package openfiles knows the limit of open files that this process was started
// with, and which descriptors. Package syscall raises the soft limit in its
// initialiser, since Go does not use select(2), and keeps what it was to itself; what
// we start is to have the caller's. Package os may make descriptors in its own (an
// epoll, where a standard stream does not block), which are not to be taken for those
// that the caller wants passed on.
//
// It must import nothing: packages that import nothing are initialised in the
// order of their paths, before those that import something, so that this one
// looks before package syscall changes anything.
package openfiles
