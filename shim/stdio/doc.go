// Package stdio moves a process's input and output between its pipes or its
// terminal and what the client named: a FIFO, a file, a logging program, or a
// stream over the shim's socket.
//
// Each stream has a copy of its own, which waits in the runtime's poller and
// has a buffer only while there is something to copy; so a reader that is stuck
// holds up its own stream and no other. The shim keeps the other end of every
// FIFO open: a client that goes away and comes back, as containerd does over
// its restart, costs the process neither a SIGPIPE nor a byte.
//
// The package opens the paths it is given and starts logging programs; it knows
// nothing of containers beyond the name it hands to those.
package stdio
