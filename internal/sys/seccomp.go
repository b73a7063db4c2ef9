package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The operations of seccomp(2), <linux/seccomp.h>.
const (
	seccompSetModeFilter = 1
	seccompActionAvail   = 2
)

// SetSeccompFilter is seccomp(SECCOMP_SET_MODE_FILTER) with a program of struct sock_filter. The
// result is that of the call: a descriptor, close-on-exec, with SECCOMP_FILTER_FLAG_NEW_LISTENER;
// with SECCOMP_FILTER_FLAG_TSYNC alone the id of a thread that could not be taken along; else 0.
func SetSeccompFilter(flags uint32, program []byte) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(program) / 8), Filter: (*unix.SockFilter)(unsafe.Pointer(unsafe.SliceData(program)))}
	result, _, errno := unix.Syscall(unix.SYS_SECCOMP, seccompSetModeFilter, uintptr(flags), uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return -1, errno
	}
	return int(result), nil
}

// SeccompFlagsKnown says whether the kernel takes the flags for a filter. It asks with no program
// at all: the flags are looked at first, then the address is found to be bad.
func SeccompFlagsKnown(flags uint32) bool {
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, seccompSetModeFilter, uintptr(flags), 0)
	return errno == unix.EFAULT
}

// SeccompActionAvailable says whether the kernel knows what to do with a SECCOMP_RET_* value.
func SeccompActionAvailable(action uint32) bool {
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, seccompActionAvail, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}
