package container

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/berth-runtime/berth/internal/proc/procs"
	"github.com/berth-runtime/berth/internal/sys"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// bootID tells this boot of the machine from others, "" where the kernel does not say. Pids and
// start times come again after a reboot.
var bootID = sync.OnceValue(func() string {
	text, _ := readFileAt(unix.AT_FDCWD, "/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(text))
})

// timeOffset is how far this process's time namespace is ahead of the host's, in ticks: the kernel
// adds it to all start times that it shows (time_namespaces(7)).
var timeOffset = sync.OnceValue(func() int64 {
	text, err := readFileAt(unix.AT_FDCWD, "/proc/self/timens_offsets") // Linux 5.5, where there are time namespaces
	if err != nil {
		return 0
	}
	return parseTimeOffset(text)
})

// parseTimeOffset takes the line of the clock that counts from boot, "boottime SECONDS
// NANOSECONDS".
func parseTimeOffset(text []byte) int64 {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) != 3 || string(fields[0]) != "boottime" {
			continue
		}
		seconds, err1 := strconv.ParseInt(string(fields[1]), 10, 64)
		nanos, err2 := strconv.ParseInt(string(fields[2]), 10, 64)
		if err1 == nil && err2 == nil {
			return seconds*procs.Ticks + nanos/(1e9/procs.Ticks)
		}
	}
	return 0
}

// statOf looks at a process. Its start is what the host's own time namespace has.
func statOf(pid int) (*procs.Stat, error) {
	s, err := procs.ReadStat(pid)
	if err != nil {
		return nil, err
	}
	s.Start -= uint64(timeOffset())
	return s, nil
}

// Alive reports whether the container's first process is there and has not ended. One
// that can't be looked at counts as there: to take a running container for a
// stopped one does the greater harm.
func (r *Record) Alive() bool {
	alive, err := r.lookAt()
	return alive || err != nil
}

func (r *Record) lookAt() (alive bool, err error) {
	if r.Pid <= 0 {
		return false, nil
	}
	s, err := statOf(r.Pid)
	if errors.Is(err, procs.ErrGone) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("container %s: look at its process %d: %w", r.ID, r.Pid, err)
	}
	if s.Start != r.StartTime || r.Boot != "" && bootID() != "" && r.Boot != bootID() {
		return false, nil
	}
	if s.State != 'Z' && s.State != 'X' {
		return true, nil
	}
	// That is its main thread alone; others may live on.
	return !ended(r.Pid), nil
}

// ended reports whether all threads of a process have ended, of which a pidfd tells. One
// that can't be looked at has not.
func ended(pid int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err == unix.ESRCH
	}
	defer unix.Close(fd)
	gone, err := waitGone(fd, 0)
	return gone && err == nil
}

// Pidfd opens the first process. It is the very process of the record: the
// start time is compared after opening, when the pid can't be reused any more.
func (r *Record) Pidfd() (int, error) {
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

// WantProcess refuses containers without a process.
func (c *Container) WantProcess(what string) error {
	switch status := c.status(); status {
	case specs.StateCreated, specs.StateRunning, Paused:
		return nil
	default:
		return fmt.Errorf("cannot %s container %s: it is %s (%w)", what, c.ID, status, ErrNotRunning)
	}
}

// LoggedSince is when the first process was made by the clock of the kernel's log: not before
// earliest, and before latest. That clock stands still while the machine is suspended, and drifts
// (x86 knows its own to 500 ppm).
func (c *Container) LoggedSince() (earliest, latest time.Duration) {
	if c.Boot != bootID() {
		return math.MaxInt64, math.MaxInt64
	}
	var boot, awake unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil {
		return 0, 0
	}
	started := time.Duration(c.StartTime) * (time.Second / procs.Ticks)
	drift := time.Second + started/2000
	return started - time.Duration(boot.Nano()-awake.Nano()) - drift, started + drift
}
