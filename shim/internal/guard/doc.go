// Package guard keeps a panic, which is a mistake of ours that somebody has found a
// way to, from being the end of a shim and with it of the watch over its containers:
// it is the end of one call.
//
// Whoever is guarded gives its locks back by defer. What Go's runtime itself gives up
// on (a map written to by two, no memory, no stack) nothing can guard.
package guard
