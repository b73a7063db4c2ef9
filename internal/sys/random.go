package sys

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Random is a number that can't be guessed, and is never 0.
func Random() (uint64, error) {
	var b [8]byte
	if _, err := unix.Getrandom(b[:], 0); err != nil { // which gives so few whole (getrandom(2))
		return 0, fmt.Errorf("ask the kernel for a random number: %w", err)
	}
	return binary.NativeEndian.Uint64(b[:]) | 1, nil
}
