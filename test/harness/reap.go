package harness

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// reap waits for the end of a child of this process, own or adopted, and takes its status.
func reap(pid int) (unix.WaitStatus, error) {
	if err := waitGone(pid, Deadline); err != nil {
		return 0, err
	}
	var status unix.WaitStatus
	for {
		// Not without waiting: as long as a strace or a criu traces it, it is that one's to wait
		// for (ptrace(2)).
		switch _, err := unix.Wait4(pid, &status, 0, nil); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		default:
			return status, nil
		}
	}
}

// waitGone waits until a process has ended, whosever child it is. A zombie has ended.
func waitGone(pid int, limit time.Duration) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(fd)
	return pollIn(fd, limit)
}

func pollIn(fd int, limit time.Duration) error {
	end := time.Now().Add(limit)
	for {
		left := time.Until(end)
		if left <= 0 {
			return fmt.Errorf("nothing came within %s", limit)
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(left.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("poll", err)
		}
		if n > 0 {
			return nil
		}
	}
}

// WaitGone waits until a process has ended.
func (b *Box) WaitGone(pid int) {
	b.T.Helper()
	if err := waitGone(pid, Deadline); err != nil {
		b.T.Fatalf("wait for process %d: %v", pid, err)
	}
}

// ReapOrphans waits for each process that this one has become the parent of since the test began,
// and takes its status, as the init of a host does. It is for the end of a test: where containers
// share the host's PID namespace, their orphans come here.
func (b *Box) ReapOrphans() {
	b.T.Helper()
	for _, pid := range b.newPIDs() {
		if p, _ := Parent(pid); p != os.Getpid() {
			continue
		}
		if _, err := reap(pid); err != nil {
			b.T.Errorf("wait for process %d, %s: %v", pid, commandLine(pid), err)
		}
	}
}

// WaitLeavers waits for the end of each process that was begun for the test, whosever child it is:
// clients leave some behind that end by themselves, a moment after the client.
func (b *Box) WaitLeavers() {
	b.T.Helper()
	for _, pid := range b.newPIDs() {
		if b.ours(pid) == "" {
			continue
		}
		if err := waitGone(pid, Deadline); err != nil {
			b.T.Errorf("wait for process %d, %s: %v", pid, commandLine(pid), err)
		}
	}
}
