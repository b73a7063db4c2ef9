// Package openfiles knows which descriptors this process was started with. Package os may
// make descriptors in its initialiser (an epoll, where a standard stream does not block),
// which are not to be taken for those that the caller wants passed on.
//
// It must import nothing: packages that import nothing are initialised in the order of
// their paths, before those that import something, so that this one looks before package
// os makes anything.
package openfiles
