// Package stack gives the main goroutine the stack that commands need, before they
// need it.
//
// A goroutine begins with 2 KiB of stack, and each time that does not do, all of it
// is copied to one twice as large: at 4, 8, 16 and 32 KiB. What that costs is not
// the copying but the pages: the runtime lays out a whole span of stacks of each
// size, and reads its tables of all functions that stand on the stack. Growing
// once, while nothing stands on it, saves a command of a few milliseconds 20 to 30
// page faults.
//
// The package imports nothing, so that the linker has it initialised before those
// of the standard library that have a stack to copy. It is imported for that only.
package stack

// size is a little more than half of what commands get: 32 KiB, of which run and
// exec use most.
const size = 20 << 10

func init() { grow(false) }

// grow returns at once: what matters is that it could not be called without a stack
// that holds its frame. Nothing of that is touched, as a variable is cleared only
// where it comes to life.
//
//go:noinline
func grow(use bool) {
	if use {
		var space [size]byte
		keep(&space)
	}
}

//go:noinline
func keep(*[size]byte) {}
