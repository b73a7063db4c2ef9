// Package sandbox is the sandbox service of containerd 2's Runtime v2: a pod
// that a client creates first, and then adds containers to.
//
// A sandbox is a container like the others to the engine, but no task to
// containerd. Its first process does nothing: it is there for the namespaces
// that the pod's containers join, and it reaps their orphans where they share its
// pid namespace. A client that gives a config.json with a process, and its root
// file system, has that process run instead.
//
// There is one sandbox in a shim at most. The containers of the shim are its
// pod then: they end with it, and the shim stays until the sandbox is shut down.
//
// The package writes config.json and the waiting program into a sandbox's
// bundle; all else it has the engine and the task service do.
package sandbox
