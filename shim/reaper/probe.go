package reaper

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/start/entry"
	"github.com/berth-runtime/berth/internal/sys"
)

// Probe runs a program while the reaper is suspended, and gives its status as Exit has it. One that
// takes longer than the limit is killed.
func (r *Reaper) Probe(argv0 string, argv []string, attr *syscall.ProcAttr, limit time.Duration) (status int, err error) {
	pidfd := -1
	attr.Sys = &syscall.SysProcAttr{PidFD: &pidfd}
	if _, err = entry.ForkExec(argv0, argv, attr); err != nil {
		return 0, fmt.Errorf("execute %s: %w", argv0, err)
	}
	defer unix.Close(pidfd)
	for end := time.Now().Add(limit); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(max(time.Until(end), 0).Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
		}
		e, err := sys.WaitID(pPidfd, pidfd, 0)
		switch {
		case err != nil:
			return 0, fmt.Errorf("wait for %s: %w", argv0, err)
		case n <= 0:
			return 0, fmt.Errorf("%s does not end within %s", argv0, limit)
		case e.Code != sys.CldExited:
			return 128 + int(e.Status), nil
		}
		return int(e.Status), nil
	}
}
