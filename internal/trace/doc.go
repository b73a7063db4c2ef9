// Package trace records how long the parts of one command take.
//
// Phases are what the command itself does, one inside the other; calls are what the
// container's init did meanwhile. A nil *Trace is one that is off: each method of it
// returns at once, so that the code on the way of every start can have its phases
// marked.
//
// It knows nothing about containers, and only the code that created the Trace writes it out. A
// Trace is for one goroutine.
package trace
