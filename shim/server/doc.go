// Package server is the shim's long-lived process: it ties the reaper, the
// task, sandbox and streaming services, the publisher and the signals together, and serves
// the socket that start has left to it.
//
// It runs with the first container's bundle as its current directory, which may be
// gone any time, and writes its log into the FIFO there.
package server
