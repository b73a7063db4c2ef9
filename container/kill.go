package container

import (
	"errors"
	"fmt"

	"github.com/berth-runtime/berth/cgroup"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Kill sends a signal to the first process, or to all processes of the
// container. Without a pid namespace of its own, the others outlive the first,
// so the cgroup is what names them.
func (c *Container) Kill(signal unix.Signal, all bool) error {
	defer c.runtime.Trace.Begin("kill").End()
	err := c.kill(signal, all)
	if err == ErrNotRunning {
		return fmt.Errorf("cannot signal container %s: it has ended (%w)", c.ID, err)
	}
	return err
}

func (c *Container) kill(signal unix.Signal, all bool) error {
	if !all {
		err := c.signalFirst(signal)
		if !errors.Is(err, ErrNotRunning) || c.ownPids() {
			return err
		}
	}
	g, err := c.openGroup()
	if err != nil {
		return err
	}
	if g == nil {
		return c.signalFirst(signal)
	}
	defer g.Close()
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
	fd, err := c.pidfd()
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
	}
	return nil
}

func (c *Container) thawForKill() {
	if c.frozen() {
		_ = c.withGroup((*cgroup.Group).Thaw)
	}
}

// ownPids reports whether the container has a pid namespace of its own, whose
// end takes all its processes with it.
func (c *Container) ownPids() bool {
	s, err := c.config()
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
