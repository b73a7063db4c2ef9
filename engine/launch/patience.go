package launch

import (
	"fmt"
	"time"

	"github.com/berth-runtime/berth/internal/proc/procs"
	"github.com/berth-runtime/berth/internal/sys"
	"golang.org/x/sys/unix"
)

// Patience is what others of a container may cost who waits for a process that enters
// it. They can stop that process (kill(2)), trace it, freeze it, or have its program on
// a file system that does not answer or under a lease, which is broken after 45 s. With
// each of these it is a minute, and two seconds after a signal to end.
const Patience = time.Minute

const patienceOnceTold = 2 * time.Second

// patience is how long a child may be silent.
type patience struct {
	bound       time.Duration // 0 for ever
	signals     int
	interrupted func() bool
	stuck       func() error
	told        bool // a signal to end has come: it is not said again to who waits for the next message
}

// While lets a child that has no other bound be given up where it has stood still for as long as
// stuckBound, in a frozen cgroup or stopped by a signal, which any process of its user may send: it
// is only just being made, and no other program has a reason for either.
func (c *Child) While(frozen func() bool) {
	c.stuck = func() error {
		if frozen() {
			return &StuckError{stuckBound, "its cgroup is frozen (thaw it, or the cgroup above it that is: cgroup.freeze and freezer.state tell)"}
		}
		if s, err := procs.ReadStat(c.Pid); err == nil && s.State == 'T' {
			return &StuckError{stuckBound, "another process has stopped it by SIGSTOP"}
		}
		return nil
	}
}

const stuckBound = 5 * time.Second

// A StuckError says that a child can't go on.
type StuckError struct {
	After time.Duration
	Why   string
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("the process has not gone on for %v, and %s", e.After, e.Why)
}

// An Impatient error says that a process was waited for long enough.
type Impatient struct {
	After time.Duration
	Told  bool // by a signal
}

func (e *Impatient) Error() string {
	why := fmt.Sprintf("the process has not executed its program within %v", e.After)
	if e.Told {
		why = "told to end before the process has executed its program"
	}
	return why + " (another process of the container may have stopped, traced or frozen it, or holds up the file of its program)"
}

func (s *Spawn) patience() patience {
	return patience{bound: s.Patience, signals: s.Signals, interrupted: s.Interrupted}
}

// await waits until a child can be heard, or has ended where that is to be told apart:
// it reports false then.
func (c *Child) await() (bool, error) {
	fds := []unix.PollFd{{Fd: int32(c.report), Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN}, {Fd: -1}}
	if c.forks > 0 {
		fds[1].Fd = int32(c.PidFD)
	}
	return c.patience.poll(fds)
}

// poll waits for the first of fds, and reports true, or for the second. The third is for
// signals.
func (p *patience) poll(fds []unix.PollFd) (bool, error) {
	bound := p.bound
	switch {
	case p.told:
		bound = patienceOnceTold
	case p.interrupted != nil:
		fds[2] = unix.PollFd{Fd: int32(p.signals), Events: unix.POLLIN}
	}
	for began := time.Now(); ; {
		left := -1
		switch {
		case bound > 0:
			left = max(0, int(time.Until(began.Add(bound)).Milliseconds()))
		case p.stuck != nil:
			left = int(stuckBound.Milliseconds())
		}
		n, err := sys.Poll(fds, left)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return true, nil // what is wrong, the read will tell
		case n == 0 && bound == 0:
			if err := p.stuck(); err != nil {
				return false, err
			}
		case n == 0:
			return false, &Impatient{After: bound, Told: p.told}
		case fds[0].Revents != 0:
			return true, nil
		case fds[1].Revents != 0:
			return false, nil
		case p.interrupted():
			p.told, began, bound = true, time.Now(), patienceOnceTold
			fds[2].Fd = -1
		}
	}
}
