package cgroup

import (
	"time"

	"golang.org/x/sys/unix"
)

// poll waits until the descriptor has one of the events, or the time is over.
func poll(fd int, events int16, until time.Time) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	for {
		left := time.Until(until)
		if left < 0 {
			left = 0
		}
		timeout := unix.NsecToTimespec(left.Nanoseconds())
		n, err := unix.Ppoll(fds, &timeout, nil)
		if err == unix.EINTR {
			continue
		}
		return n > 0, err
	}
}

// breathe gives the kernel a moment where it offers nothing to wait for:
// version 1's freezer, and its directories after their last process went. The
// moments grow from 50 µs to 5 ms. It tells whether there is time left.
func breathe(round int, until time.Time) bool {
	if !time.Now().Before(until) {
		return false
	}
	pause := unix.NsecToTimespec(min(int64(50_000)<<min(round, 7), 5_000_000))
	unix.Ppoll(nil, &pause, nil)
	return true
}

// coreEvents is version 2's cgroup.events.
type coreEvents struct{ populated, frozen bool }

func parseCoreEvents(text []byte) coreEvents {
	var e coreEvents
	for key, value := range flatKeyed(text) {
		switch key {
		case "populated":
			e.populated = value != 0
		case "frozen":
			e.frozen = value != 0
		}
	}
	return e
}

// events reads the state that version 2 keeps of a group.
func (g *Group) events(n *node) (coreEvents, error) {
	var buf [128]byte
	text, err := g.read(n, "cgroup.events", buf[:])
	return parseCoreEvents(text), err
}

// awaitEvents waits until cgroup.events satisfies done. The kernel marks the
// open file when its content changes; it is read again for each mark.
func (g *Group) awaitEvents(n *node, until time.Time, done func(coreEvents) bool) (bool, error) {
	dir, err := g.open(n)
	if err != nil {
		return false, err
	}
	fd, err := openAt(dir, "cgroup.events", unix.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	var buf [128]byte
	for {
		size, err := unix.Pread(fd, buf[:], 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return false, err
		}
		if done(parseCoreEvents(buf[:size])) {
			return true, nil
		}
		ready, err := poll(fd, unix.POLLPRI, until)
		if err != nil || !ready {
			return false, err
		}
	}
}

// awaitEmpty waits until no living process is in the node or below it.
func (g *Group) awaitEmpty(n *node, until time.Time) (bool, error) {
	if n.Version == 2 {
		return g.awaitEvents(n, until, func(e coreEvents) bool { return !e.populated })
	}
	// Version 1 has no event for it. While one process of the list lives the group
	// is not empty, so waiting for them one after the other is enough.
	for {
		pids, err := g.procsOf(n, true)
		if err != nil || len(pids) == 0 {
			return err == nil, err
		}
		pidfd, err := unix.PidfdOpen(pids[0], 0)
		if err == unix.ESRCH {
			continue
		}
		if err != nil {
			return false, err
		}
		ready, err := poll(pidfd, unix.POLLIN, until)
		unix.Close(pidfd)
		if err != nil || !ready {
			return false, err
		}
	}
}

// WaitEmpty waits until no living process is in the group or below it, for as
// long as the host's Timeout; then it gives ErrTimeout.
func (g *Group) WaitEmpty() error {
	until := time.Now().Add(g.host.Timeout)
	for _, n := range g.byPreference() {
		empty, err := g.awaitEmpty(n, until)
		if gone(err) {
			continue
		}
		if err == nil && !empty {
			err = ErrTimeout
		}
		if err != nil {
			return &Error{Op: "wait for the end of the processes in", Path: n.full(""), Err: err}
		}
	}
	return nil
}
