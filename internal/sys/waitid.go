package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// ChildExit is what waitid(2) tells of a child that has ended.
type ChildExit struct {
	Pid int
	// Code is one of CLD_EXITED, CLD_KILLED and CLD_DUMPED.
	Code int32
	// Status is the exit status, or the signal that ended the child.
	Status int32
}

// The codes of SIGCHLD, from siginfo.h.
const (
	CldExited = 1
	CldKilled = 2
	CldDumped = 3
)

// childInfo is siginfo_t as SIGCHLD fills it. After three ints the union is
// aligned to a pointer, which puts a hole before it on 64-bit machines.
type childInfo struct {
	_      [2]int32 // signo, errno (the other way round on MIPS)
	code   int32
	_      [unsafe.Sizeof(uintptr(0))/4 - 1]int32
	pid    int32
	uid    uint32
	status int32
	_      [128 - 24 - (unsafe.Sizeof(uintptr(0)) - 4)]byte
}

// WaitID is waitid(2) for ended children, with WEXITED and the given options.
// With WNOHANG and no child that has ended, it returns pid 0 and no error.
func WaitID(idType, id, options int) (ChildExit, error) {
	for {
		var info childInfo
		err := unix.Waitid(idType, id, (*unix.Siginfo)(unsafe.Pointer(&info)), options|unix.WEXITED, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return ChildExit{}, err
		}
		return ChildExit{Pid: int(info.pid), Code: info.code, Status: info.status}, nil
	}
}

// ChildExitAt is what a waitid(2) has left in memory that another process was to fill.
func ChildExitAt(b []byte) ChildExit {
	info := (*childInfo)(unsafe.Pointer(&b[:unsafe.Sizeof(childInfo{})][0]))
	return ChildExit{Pid: int(info.pid), Code: info.code, Status: info.status}
}
