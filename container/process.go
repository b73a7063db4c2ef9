package container

import (
	"bytes"
	"errors"
	"strconv"

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
	// The name in parentheses may hold anything, parentheses and line ends
	// too; what follows its last one is numbers.
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return stat{}, errors.New("/proc/PID/stat has no name in parentheses")
	}
	fields := bytes.Fields(text[end+1:])
	const state, startTime = 0, 19 // fields 3 and 22
	if len(fields) <= startTime || len(fields[state]) != 1 {
		return stat{}, errors.New("/proc/PID/stat is too short")
	}
	start, err := strconv.ParseUint(string(fields[startTime]), 10, 64)
	if err != nil {
		return stat{}, errors.New("/proc/PID/stat has no start time")
	}
	return stat{State: fields[state][0], StartTime: start}, nil
}

// alive reports whether the container's first process is there and no zombie.
func (r *Record) alive() bool {
	if r.Pid <= 0 {
		return false
	}
	s, err := statOf(r.Pid)
	return err == nil && s.StartTime == r.StartTime && s.State != 'Z' && s.State != 'X'
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
		return -1, err
	}
	if !r.alive() {
		unix.Close(fd)
		return -1, ErrNotRunning
	}
	return fd, nil
}

// waitGone waits until the process of a pidfd has ended.
func waitGone(pidfd int) error {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		if err != unix.EINTR {
			return err
		}
	}
}
