package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// SetThreadName sets the name of this thread, of which ps shows the first thread's: 15 bytes at
// most (PR_SET_NAME(2const)). Unlike a write to comm it takes no descriptor.
func SetThreadName(name string) {
	text := append([]byte(name), 0)
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&text[0])), 0, 0, 0)
}
