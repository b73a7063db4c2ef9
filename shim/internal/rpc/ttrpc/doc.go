// Package ttrpc is the part of containerd's ttrpc that a shim needs: a server
// of calls and streams on a unix socket, a client that publishes events, and the
// status codes that the two carry.
//
// Sockets are plain descriptors in an os.File: the runtime's poller serves them
// as well as package net would, whose start-up every execution of the shim
// would pay for. A server accepts only peers of its own user and group, answers
// calls of one connection in any order, bounds each by the caller's timeout,
// and cancels them when the connection goes.
//
// The package knows frames and statuses, not what is in a message; it touches
// nothing but the sockets it is given.
package ttrpc
