package launch

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// A minder is the first process of a pid namespace that minds the others there
// (compile.Container makes it, where the Plan wants one). It waits for the end of a
// pipe that only we can write to, so that it ends when we do, however that comes.
type minder struct {
	pid    int // 0 until it is heard of
	ours   int
	theirs int
}

// newMinder makes the pipe, where a minder is wanted.
func (s *Spawn) newMinder() (*minder, error) {
	if !s.Minded {
		return &minder{ours: -1, theirs: -1}, nil
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make the pipe that the container lives by: %w", err)
	}
	return &minder{theirs: ends[0], ours: ends[1]}, nil
}

// keep leaves our end of the pipe open beyond the start.
func (m *minder) keep() *minder {
	kept := &minder{ours: m.ours, theirs: -1}
	m.ours = -1
	return kept
}

// started closes what only the start needed.
func (m *minder) started() {
	closeAll(m.ours, m.theirs)
}

// release lets the minder go, and with it all that is left in the namespace.
func (m *minder) release() {
	if m != nil {
		closeAll(m.ours)
		m.ours = -1
	}
}

// reap waits for the minder. The kernel keeps it until all others of the namespace
// are reaped, our child among them.
func (m *minder) reap() {
	m.release()
	if m == nil || m.pid == 0 {
		return // there is none, or it was never heard of and ends by the pipe
	}
	for {
		if _, err := unix.Wait4(m.pid, nil, 0, nil); err != unix.EINTR {
			return
		}
	}
}

func closeAll(fds ...int) {
	for _, fd := range fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}
