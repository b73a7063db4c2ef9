// Package linked is this project's own engine as the shim wants it: called as a
// library, with nothing executed but the containers.
//
// The engine keeps a container in its state directory, so each call finds it there
// again and no call has to wait for another in memory, but a pause for the processes
// that are on their way into the container. It makes the processes as
// children of this one and leaves them to the shim's reaper.
package linked
