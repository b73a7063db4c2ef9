package sys

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestPoll(t *testing.T) {
	for name, poll := range map[string]func([]unix.PollFd, int) (int, error){"among others": Poll, "alone": pollAlone} {
		interruptible := poll
		poll = func(fds []unix.PollFd, timeout int) (n int, err error) {
			for {
				if n, err = interruptible(fds, timeout); err != unix.EINTR {
					return n, err
				}
			}
		}
		t.Run(name, func(t *testing.T) {
			var pipe [2]int
			if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			fds := []unix.PollFd{{Fd: -1}, {Fd: int32(pipe[0]), Events: unix.POLLIN}}
			for _, timeout := range []int{0, 1, 8, 9, 20} {
				began := time.Now()
				if n, err := poll(fds, timeout); n != 0 || err != nil {
					t.Errorf("timeout %d, nothing to read: %d, %v", timeout, n, err)
				}
				if took := time.Since(began); took < time.Duration(timeout)*time.Millisecond {
					t.Errorf("timeout %d: over after %v", timeout, took)
				}
			}
			// Longer than it keeps the processor: the writer may need it.
			time.AfterFunc(20*time.Millisecond, func() { _, _ = unix.Write(pipe[1], []byte{1}) })
			for _, timeout := range []int{-1, 0, 60_000} {
				if n, err := poll(fds, timeout); n != 1 || err != nil || fds[1].Revents != unix.POLLIN {
					t.Errorf("timeout %d, something to read: %d, %v, %+v", timeout, n, err, fds[1])
				}
			}
			unix.Close(pipe[0])
			unix.Close(pipe[1])
			if _, err := poll(make([]unix.PollFd, 1<<21), -1); err != unix.EINVAL { // more than RLIMIT_NOFILE
				t.Errorf("too many descriptors: %v, want EINVAL", err)
			}
		})
	}
}
