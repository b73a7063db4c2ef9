package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// A SeccompCall is struct seccomp_notif, <linux/seccomp.h>: a call that waits for its answer.
type SeccompCall struct {
	ID      uint64
	Pid     uint32
	Flags   uint32
	Number  uint32
	Arch    uint32 // AUDIT_ARCH_*
	Address uint64 // of the instruction
	Args    [6]uint64
}

// A SeccompAnswer is struct seccomp_notif_resp.
type SeccompAnswer struct {
	ID    uint64
	Value int64
	Error int32 // 0 or a negative errno
	Flags uint32
}

// SeccompSizes is how long this kernel's structures of a notification are, by
// SECCOMP_GET_NOTIF_SIZES (5.0): it may write more than we know of.
func SeccompSizes() (call, answer int, err error) {
	var sizes struct{ call, answer, data uint16 }
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&sizes)))
	if errno != 0 {
		return 0, 0, errno
	}
	return max(int(sizes.call), int(unsafe.Sizeof(SeccompCall{}))), max(int(sizes.answer), int(unsafe.Sizeof(SeccompAnswer{}))), nil
}

// ReceiveSeccompCall is SECCOMP_IOCTL_NOTIF_RECV. The buffer, in words for its alignment, is as
// long as SeccompSizes says. ENOENT says that the call is there no more.
func ReceiveSeccompCall(listener int, buffer []uint64) (*SeccompCall, error) {
	clear(buffer) // the kernel insists
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(unsafe.SliceData(buffer))))
	if errno != 0 {
		return nil, errno
	}
	return (*SeccompCall)(unsafe.Pointer(unsafe.SliceData(buffer))), nil
}

// AnswerSeccompCall is SECCOMP_IOCTL_NOTIF_SEND. The buffer is as long as SeccompSizes says.
func AnswerSeccompCall(listener int, buffer []uint64, a SeccompAnswer) error {
	clear(buffer)
	*(*SeccompAnswer)(unsafe.Pointer(unsafe.SliceData(buffer))) = a
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(unsafe.SliceData(buffer))))
	if errno != 0 {
		return errno
	}
	return nil
}

// SeccompCallWaits is SECCOMP_IOCTL_NOTIF_ID_VALID: whether the call still waits for its answer.
func SeccompCallWaits(listener int, id uint64) bool {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&id)))
	return errno == 0
}

// WakeSeccompCallsHere has the kernel run the caller and who answers it by turns on one processor
// (6.6), which takes a fraction of the time.
func WakeSeccompCallsHere(listener int) {
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
}
