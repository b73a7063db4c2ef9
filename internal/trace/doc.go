// Package trace notes how long the parts of one command take, and writes that down.
//
// Phases are what the command itself does, one inside the other; calls are what the
// container's init did meanwhile. A nil *Trace is one that is off: each method of it
// returns at once, so that the code on the way of every start can have its phases
// marked.
//
// It knows nothing of containers, and only whoever makes the Trace writes it down. A
// Trace is for one goroutine.
package trace
