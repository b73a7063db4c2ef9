package container

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Kill sends a signal to the first process, or to all processes of the
// container. Without a pid namespace of its own, the others outlive the first:
// SIGKILL is for all of them then, and the cgroup is what names them.
func (c *Container) Kill(signal unix.Signal, all bool) error {
	defer c.runtime.Trace.Begin("kill").End()
	err := c.kill(signal, all)
	switch {
	case err == ErrNotRunning && c.Pid == 0:
		return fmt.Errorf("cannot signal container %s: it has no process yet (%w)", c.ID, err)
	case err == ErrNotRunning:
		return fmt.Errorf("cannot signal container %s: it has ended (%w)", c.ID, err)
	}
	return err
}

func (c *Container) kill(signal unix.Signal, all bool) error {
	// A pid namespace ends with its first process. What is in the cgroup after that, or below it
	// without being in the namespace, is not the container's.
	if own := c.ownPids(); own && (!all || signal == unix.SIGKILL || !c.Alive()) || !all && signal != unix.SIGKILL {
		err := c.signalFirst(signal)
		if !errors.Is(err, ErrNotRunning) || own {
			return err
		}
	}
	g, err := c.OpenGroup()
	if errors.Is(err, fs.ErrNotExist) && !c.Alive() {
		return ErrNotRunning // systemd removes the cgroup with the last process
	}
	if err != nil {
		return err
	}
	if g == nil {
		return c.signalFirst(signal)
	}
	defer g.Close()
	if !c.Alive() {
		if others, err := c.others(g); err != nil || len(others) > 0 {
			return cmp.Or(err, fmt.Errorf("its cgroup is in use by %s (%w)", processNames(others), ErrNotRunning))
		}
	}
	pids, err := g.AllProcs()
	if err != nil {
		if errors.Is(err, unix.ENOENT) {
			return ErrNotRunning
		}
		return err
	}
	if len(pids) == 0 {
		return ErrNotRunning
	}
	if signal == unix.SIGKILL {
		return g.Kill()
	}
	return g.Signal(signal)
}

func (c *Container) signalFirst(signal unix.Signal) error {
	fd, err := c.Pidfd()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil {
		if err == unix.ESRCH {
			return ErrNotRunning
		}
		return fmt.Errorf("send %s to process %d: %w", unix.SignalName(signal), c.Pid, err)
	}
	if signal == unix.SIGKILL {
		// A frozen process takes note of it only once it is thawed (v1).
		c.thawForKill()
		if c.groupsBelow() {
			_, err := c.awaitKilled(fd, thawLimit)
			return err
		}
	}
	return nil
}

func (c *Container) thawForKill() {
	if c.frozen() {
		_ = c.WithGroup((*cgroup.Group).Thaw)
	}
}

// thawLimit is how long a kill, which waits for no end, looks after one that may be frozen.
const thawLimit = time.Second

// awaitKilled waits for the end of the first process, which has its SIGKILL. One that does not
// end at once may be in a frozen group below the container's own: a process in a
// container that may write to its cgroup can do that, and once more after each thaw.
func (c *Container) awaitKilled(pidfd int, limit time.Duration) (gone bool, err error) {
	step := 10 * time.Millisecond
	for end := time.Now().Add(limit); ; step = min(2*step, time.Second) {
		left := time.Until(end)
		if gone, err = waitGone(pidfd, min(step, left)); gone || err != nil || left <= step {
			return gone, err
		}
		if c.groupsBelow() {
			_ = c.WithGroup((*cgroup.Group).ThawTree)
		}
	}
}

// groupsBelow reports whether there are groups below the container's in version 1's freezer: its
// directory has two links, and one for each of them.
func (c *Container) groupsBelow() bool {
	for _, file := range c.Cgroup.Freezers {
		var st unix.Stat_t
		if dir, ok := strings.CutSuffix(file, "/freezer.state"); ok && unix.Stat(dir, &st) == nil && st.Nlink > 2 {
			return true
		}
	}
	return false
}

// ownPids reports whether the container has a pid namespace of its own that ends with its process,
// and takes all the others with it. One with a minder ends a moment later.
func (c *Container) ownPids() bool {
	if c.Minded {
		return false
	}
	if c.OwnPids {
		return true
	}
	s, err := c.Config()
	if err != nil || s.Linux == nil {
		return false
	}
	for _, n := range s.Linux.Namespaces {
		if n.Type == specs.PIDNamespace {
			return n.Path == ""
		}
	}
	return false
}
