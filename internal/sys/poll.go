package sys

import (
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// alone is how long Poll keeps Go's processor: less than the ten milliseconds after which a
// goroutine is asked, by a signal, to let others run.
const alone = 8 * time.Millisecond

// Poll is poll(2), for a wait that is mostly short. A goroutine that waits in the kernel is soon,
// by the second look of the watching thread, taken for one that waits for long, and another thread
// is made to run the others. Where there are no others it has nothing to do, and is in the way when
// the wait is over: so the first milliseconds are waited without telling Go. A timeout is in
// milliseconds, or -1 for none.
func Poll(fds []unix.PollFd, timeout int) (int, error) {
	if runtime.NumGoroutine() == 1 {
		return pollAlone(fds, timeout)
	}
	return unix.Poll(fds, timeout)
}

func pollAlone(fds []unix.PollFd, timeout int) (int, error) {
	first := alone
	if timeout >= 0 {
		first = min(alone, time.Duration(timeout)*time.Millisecond)
	}
	brief := unix.NsecToTimespec(int64(first))
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(fds))), uintptr(len(fds)), uintptr(unsafe.Pointer(&brief)), 0, 0, 0)
	switch {
	case errno == unix.EINTR: // by Go's own signal, it may be
		return unix.Poll(fds, timeout)
	case errno != 0:
		return 0, errno
	case timeout >= 0:
		timeout -= int(first.Milliseconds())
	}
	if n > 0 || timeout == 0 {
		return int(n), nil
	}
	return unix.Poll(fds, timeout)
}
