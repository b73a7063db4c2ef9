package container

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/internal/resctrl"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Delete removes the container and all that was made for it. A created one is
// killed; a running one only by force. By force it works from whatever a killed
// command has left.
func (c *Container) Delete(force bool) error {
	defer c.runtime.Trace.Begin("delete").End()
	if force {
		// Whoever holds the lock may be waiting for this very process.
		if err := c.killFirst(); err != nil {
			return err
		}
	}
	if err := c.holdToDelete(force); err != nil {
		if force && errors.Is(err, ErrNotExist) {
			return nil // deleted meanwhile
		}
		return err
	}
	remove := c.remove
	if !force {
		switch status := c.status(); status {
		case specs.StateStopped:
			remove = c.removeEnded
		case specs.StateCreating, specs.StateCreated:
		default:
			return fmt.Errorf("cannot delete container %s: %w (it is %s; stop it first, or use --force)", c.ID, ErrRunning, status)
		}
	}
	if err := remove(); err != nil {
		return err
	}
	c.Release()
	return nil
}

// holdToDelete takes the lock. By force a record that can't be read is none.
func (c *Container) holdToDelete(force bool) error {
	if !force {
		return c.hold()
	}
	if err := c.acquire(); err != nil {
		return err
	}
	_ = c.reload()
	return nil
}

// remove ends the container and takes away all that was made for it. The caller
// has the lock.
func (c *Container) remove() error {
	if err := c.killFirst(); err != nil {
		return err
	}
	return c.removeEnded()
}

// removeEnded is remove for a container whose first process has ended.
func (c *Container) removeEnded() error {
	if err := c.stopUnit(); err != nil {
		return err
	}
	if err := c.removeGroup(); err != nil {
		return err
	}
	if err := resctrl.Remove(c.Rdt); err != nil {
		return fmt.Errorf("container %s: %w", c.ID, err)
	}
	if c.Pid != 0 {
		if hooks, _, err := c.hooks(); err == nil {
			c.poststop(hooks)
		}
	}
	c.removeFolder()
	return nil
}

// killFirst ends the first process and waits until it is gone.
func (c *Container) killFirst() error {
	defer c.runtime.Trace.Begin("end the first process").End()
	fd, err := c.pidfd()
	if err != nil {
		return nil // there is none, or its record is of no use
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return nil
	}
	c.thawForKill()
	limit := cmp.Or(c.runtime.EndLimit, endLimit)
	gone, err := waitGone(fd, limit)
	switch {
	case err != nil:
		return fmt.Errorf("container %s: wait for the end of process %d: %w", c.ID, c.Pid, err)
	case !gone:
		// The first process of a pid namespace ends after all others in it, and those
		// that came from outside must be waited for by their parents there, see
		// pid_namespaces(7). One that is in a system call that can't be interrupted does
		// not end either.
		return fmt.Errorf("container %s: process %d does not end within %s of its SIGKILL; it may wait for a process that was added to the container, "+
			"and whose parent does not reap it (ps -eo pid,ppid,stat,wchan,args shows both): try again when that has been done", c.ID, c.Pid, limit.Round(time.Millisecond))
	}
	return nil
}

// removeGroup ends what is left in the container's cgroup and removes it.
func (c *Container) removeGroup() error {
	defer c.runtime.Trace.Begin("remove the cgroup").End()
	if c.Pid != 0 && c.Cgroup.MadeAll && c.opened == nil {
		if left, ok := cgroup.RemoveMade(c.Cgroup.Made); ok {
			c.parentsAfter(left)
			return nil // without a look at the host's hierarchies
		}
	}
	g, err := c.openGroup()
	if errors.Is(err, fs.ErrNotExist) || g == nil && err == nil {
		c.parentsAfter(c.parentsMade())
		return nil
	}
	if err != nil {
		return fmt.Errorf("container %s: open its cgroup: %w", c.ID, err)
	}
	defer g.Close()
	if c.Pid == 0 && len(c.Cgroup.Made) == 0 && !abandoned(g) {
		// Its maker was killed between the intent and the making: what is there is
		// somebody else's.
		return nil
	}
	if err := g.Purge(); err != nil {
		return fmt.Errorf("container %s: %w", c.ID, err)
	}
	c.parentsAfter(c.parentsMade())
	return nil
}

// parentsMade are the parents that were made for the cgroup.
func (c *Container) parentsMade() (dirs []string) {
	for i, dir := range c.Cgroup.Made {
		if i > 0 && dir == filepath.Dir(c.Cgroup.Made[i-1]) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// parentsAfter minds the parents that were made, for this cgroup or for others beside it, when this one has been removed.
func (c *Container) parentsAfter(left []string) {
	var err error
	if len(left) > 0 {
		err = c.runtime.leaveParents(left)
	} else if filepath.Dir(c.Cgroup.Path) != "/" {
		err = c.runtime.removeLeftParents()
	}
	if err != nil {
		c.runtime.warn("container %s: %v", c.ID, err)
	}
}
