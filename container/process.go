package container

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-runtime/berth/internal/procs"
	"github.com/berth-runtime/berth/internal/sys"
	"golang.org/x/sys/unix"
)

// stat is what /proc/PID/stat says of a process (proc_pid_stat(5)).
type stat struct {
	State     byte
	StartTime uint64
}

var errGone = errors.New("process is gone")

// statOf reads the state and start time of a process.
func statOf(pid int) (stat, error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		if err == unix.ENOENT {
			return stat{}, errGone
		}
		return stat{}, err
	}
	defer unix.Close(fd)
	var buf [1024]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		if err == unix.ESRCH {
			return stat{}, errGone
		}
		return stat{}, err
	}
	return parseStat(buf[:n])
}

func parseStat(text []byte) (stat, error) {
	_, _, rest, ok := procs.SplitStat(text)
	if !ok {
		return stat{}, errors.New("/proc/PID/stat has no name in parentheses")
	}
	const state, startTime = 0, 19 // fields 3 and 22
	var s stat
	n := 0
	for field := range bytes.FieldsSeq(rest) {
		switch n {
		case state:
			if len(field) == 1 {
				s.State = field[0]
			}
		case startTime:
			start, err := strconv.ParseUint(string(field), 10, 64)
			if err != nil {
				return stat{}, errors.New("/proc/PID/stat has no start time")
			}
			s.StartTime = start
		}
		n++
	}
	if n <= startTime || s.State == 0 {
		return stat{}, errors.New("/proc/PID/stat is too short")
	}
	return s, nil
}

// alive reports whether the container's first process is there and no zombie. One
// that can't be looked at counts as there: to take a running container for a
// stopped one does the greater harm.
func (r *Record) alive() bool {
	alive, err := r.lookAt()
	return alive || err != nil
}

func (r *Record) lookAt() (alive bool, err error) {
	if r.Pid <= 0 {
		return false, nil
	}
	s, err := statOf(r.Pid)
	if err == errGone {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("container %s: look at its process %d: %w", r.ID, r.Pid, err)
	}
	return s.StartTime == r.StartTime && s.State != 'Z' && s.State != 'X', nil
}

// pidfd opens the first process. It is the very process of the record: the
// start time is compared after opening, when the pid can't be reused any more.
func (r *Record) pidfd() (int, error) {
	if r.Pid <= 0 {
		return -1, ErrNotRunning
	}
	fd, err := unix.PidfdOpen(r.Pid, 0)
	if err != nil {
		if err == unix.ESRCH {
			return -1, ErrNotRunning
		}
		return -1, fmt.Errorf("container %s: open its process %d: %w", r.ID, r.Pid, err)
	}
	alive, err := r.lookAt()
	if err == nil && !alive {
		err = ErrNotRunning
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// waitGone waits until the process of a pidfd has ended, but no longer than a limit.
func waitGone(pidfd int, limit time.Duration) (gone bool, err error) {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for end := time.Now().Add(limit); ; {
		left := max(time.Until(end), 0)
		n, err := sys.Poll(fds, int(left.Milliseconds()))
		if err != unix.EINTR {
			return n > 0, err
		}
	}
}
