// Package criu talks to criu, the program that checkpoints and restores processes.
//
// It starts "criu swrk", which serves one caller over a socket, and speaks the
// protocol buffers of criu's rpc.proto with it: a request, notifications while it
// is being served, a response. The few messages that it takes are encoded here by
// hand, since the init of a protocol buffer library would slow the start of every
// other command down.
//
// What a container is, and what to tell criu about it, is up to package container. The package
// starts processes and reads criu's log, and touches nothing else.
package criu
