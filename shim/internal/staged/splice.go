package staged

import (
	"os"

	"golang.org/x/sys/unix"
)

// most is how much is moved at a time.
const most = 32 << 10

// Splice moves what there is within the kernel, so that a shim that is killed has either not read
// it or written it. It waits for both ends; one of them must be a pipe.
func Splice(dst, src *os.File) (n int64, err error) {
	from, err := src.SyscallConn()
	if err != nil {
		return 0, err
	}
	to, err := dst.SyscallConn()
	if err != nil {
		return 0, err
	}
	var moveErr error
	for {
		full := false
		err = from.Read(func(in uintptr) (done bool) {
			err := to.Control(func(out uintptr) {
				for {
					moved, err := unix.Splice(int(in), nil, int(out), nil, most, unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
					n, moveErr = int64(moved), err // an int on 32-bit machines
					if moveErr != unix.EINTR {
						break
					}
				}
				if moveErr == unix.EAGAIN {
					ready := []unix.PollFd{{Fd: int32(in), Events: unix.POLLIN}}
					unix.Poll(ready, 0)
					full = ready[0].Revents != 0
				}
			})
			if err != nil {
				moveErr = err
			}
			return moveErr != unix.EAGAIN || full
		})
		if err != nil {
			return 0, err
		}
		if moveErr != unix.EAGAIN {
			return max(n, 0), moveErr
		}
		err = to.Write(func(out uintptr) bool {
			room := []unix.PollFd{{Fd: int32(out), Events: unix.POLLOUT}}
			unix.Poll(room, 0)
			return room[0].Revents != 0
		})
		if err != nil {
			return 0, err
		}
	}
}
