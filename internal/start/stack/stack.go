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
