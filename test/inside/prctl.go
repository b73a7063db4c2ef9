package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// getInt is a prctl(2) that writes its answer to an int.
func getInt(option int) (int, error) {
	var value int32
	_, _, errno := unix.RawSyscall(unix.SYS_PRCTL, uintptr(option), uintptr(unsafe.Pointer(&value)), 0)
	return int(value), errnoOrNil(errno)
}
