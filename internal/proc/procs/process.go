package procs

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrGone is of a process that is not there any more.
var ErrGone = errors.New("the process is gone")

// A Process is one as it was a moment ago.
type Process struct {
	PID, Parent int
	UID         uint32 // effective, as the host numbers it
	State       byte   // Z of one that has ended
	Terminal    uint64 // device number, 0 for none
	CPU         time.Duration
	Started     time.Time
	// Name is what the kernel calls it: 15 bytes of what it executes, or what it says itself.
	Name string
	// Args are empty of a process of the kernel's, and of one that has ended.
	Args []string
}

// Read looks at a process.
func Read(pid int) (*Process, error) {
	folder := "/proc/" + strconv.Itoa(pid) + "/"
	stat, err := ReadStat(pid)
	if err != nil {
		return nil, err
	}
	p := &Process{PID: stat.PID, Parent: stat.Parent, State: stat.State, Terminal: stat.Terminal, CPU: span(stat.User) + span(stat.System), Name: stat.Name}
	status, err := readFile(folder + "status")
	if err != nil {
		return nil, err
	}
	if p.UID, err = parseUID(status); err != nil {
		return nil, fmt.Errorf("%sstatus: %w", folder, err)
	}
	args, err := readFile(folder + "cmdline")
	if err != nil {
		return nil, err
	}
	if len(args) > 0 {
		p.Args = strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00")
	}
	var up unix.Timespec // the time that stat counts from, suspends included
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return nil, fmt.Errorf("read the time since boot: %w", err)
	}
	p.Started = time.Now().Add(span(stat.Start) - time.Duration(up.Nano()))
	return p, nil
}

// span is a number of ticks as a time; what is longer than 290 years is cut to that.
func span(n uint64) time.Duration {
	const most = uint64(1<<62) / uint64(time.Second/Ticks)
	return time.Duration(min(n, most)) * (time.Second / Ticks)
}

// parseUID finds the second of four ids in a status file's line Uid.
func parseUID(text []byte) (uint32, error) {
	for line := range bytes.Lines(text) {
		rest, found := bytes.CutPrefix(line, []byte("Uid:"))
		if !found {
			continue
		}
		ids := bytes.Fields(rest)
		if len(ids) != 4 {
			return 0, fmt.Errorf("%q has not four ids", line)
		}
		id, err := strconv.ParseUint(string(ids[1]), 10, 32)
		if err != nil {
			return 0, fmt.Errorf("%q is not an id", ids[1])
		}
		return uint32(id), nil
	}
	return 0, errors.New("there is no line Uid")
}

// readFile reads a file of /proc, without the poller that package os makes for its first file.
func readFile(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	text := make([]byte, 0, 2048)
	for {
		n, err := unix.Read(fd, text[len(text):cap(text)])
		switch {
		case err == unix.ESRCH:
			return nil, ErrGone
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", path, err)
		case n == 0:
			return text, nil
		}
		if text = text[:len(text)+n]; len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
	}
}
