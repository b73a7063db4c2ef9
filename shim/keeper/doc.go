// Package keeper is the shim's side of its keeper (internal/start/entry): the process that is the
// shim's parent, has one table of descriptors with it, and executes it anew when it was killed.
//
// What the next shim has to know is in shared memory, which takes no system calls to write:
// [Memory] keeps pieces of state that are replaced one or several at a time, each as a whole. What
// the pieces say is up to their owners (packages ttrpc, task, stdio, events, reaper); package
// server makes of them what a shim hands over when it is upgraded.
//
// It knows of no container, and calls none of those packages.
package keeper
