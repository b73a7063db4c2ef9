// Package guard keeps a panic, which is a bug of ours that a client has found a
// way to, from being the end of a shim and with it of the watch over its containers:
// it is the end of one call.
//
// Guarded code must release its locks by defer. What Go's runtime itself gives up
// on (a map written to by two, no memory, no stack) nothing can guard.
package guard
