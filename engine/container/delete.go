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
		// The holder of the lock may be waiting for this very process.
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
	kill := true
	if !force {
		switch status := c.status(); status {
		case specs.StateStopped:
			kill = false
		case specs.StateCreating, specs.StateCreated:
		default:
			return fmt.Errorf("cannot delete container %s: %w (it is %s; stop it first, or use --force)", c.ID, ErrRunning, status)
		}
	}
	if kill {
		if err := c.killFirst(); err != nil {
			return err
		}
	}
	if err := c.removeEnded(force); err != nil {
		return err
	}
	c.Release()
	return nil
}

// holdToDelete takes the lock. By force a record that can't be read is none, if no process
// is left that it would have named.
func (c *Container) holdToDelete(force bool) error {
	if !force {
		return c.hold()
	}
	if err := c.acquireByForce(); err != nil {
		return err
	}
	err := c.reload()
	if err != nil {
		if err = c.withoutRecord(err); err != nil {
			c.Release()
		}
	}
	return err
}

// acquireByForce takes the lock. A command that has it, and waits for a hook, ends that.
func (c *Container) acquireByForce() error {
	held, err := c.tryAcquire()
	if held || err != nil {
		return err
	}
	if c.reload() == nil { // else the directory is not a container's
		if err := c.askForEnd(); err != nil {
			return err
		}
	}
	return c.acquire()
}

// remove ends the container and removes all that was made for it, but for a
// cgroup that others live in. The caller has the lock.
func (c *Container) remove() error {
	if err := c.killFirst(); err != nil {
		return err
	}
	return c.removeEnded(true)
}

// removeEnded is remove for a container whose first process has ended. Others in its
// cgroup are an error, unless it is to be left to them.
func (c *Container) removeEnded(leave bool) error {
	steps := takeDown{group: func() error { return c.removeGroup(leave) }, rdt: c.removeRdt, hooks: func() {
		if c.Pid == 0 {
			return
		}
		if hooks, _, err := c.hooks(); err == nil {
			c.poststop(hooks)
		}
	}}
	if err := steps.do(func(err error) error { return err }); err != nil {
		return err
	}
	c.removeFolder()
	return nil
}

func (c *Container) removeRdt() error {
	if err := resctrl.Remove(c.Rdt); err != nil {
		return fmt.Errorf("container %s: %w", c.ID, err)
	}
	return nil
}

// takeDown is how a container goes whose processes have been killed: one that is deleted,
// and one that could not be made. The poststop hooks come last, "after the container is
// deleted" (runtime.md), so that they may count on nothing of it being left.
type takeDown struct {
	group, rdt func() error // group with its unit
	hooks      func()
}

// do takes all steps. After one that fails it goes on where failed returns nil.
func (t *takeDown) do(failed func(error) error) error {
	for _, step := range [...]func() error{t.group, t.rdt} {
		if err := step(); err != nil {
			if err := failed(err); err != nil {
				return err
			}
		}
	}
	t.hooks()
	return nil
}

// killFirst ends the first process and waits until it is gone.
func (c *Container) killFirst() error {
	defer c.runtime.Trace.Begin("end the first process").End()
	fd, err := c.Pidfd()
	if err != nil {
		return nil // there is none, or its record is of no use
	}
	defer unix.Close(fd)
	if c.Cgroup.Unit != "" && c.frozen() {
		c.freezeUnit(false) // before the kill, see stopUnit
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return nil
	}
	c.thawForKill()
	limit := cmp.Or(c.runtime.EndLimit, endLimit)
	gone, err := c.awaitKilled(fd, limit)
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
func (c *Container) removeGroup(leave bool) error {
	defer c.runtime.Trace.Begin("remove the cgroup").End()
	if c.Pid != 0 && c.Cgroup.MadeAll && c.Cgroup.Unit == "" {
		if left, ok := removeMade(c.Cgroup.Made); ok {
			c.parentsAfter(left)
			return nil // without a look at the host's hierarchies
		}
	}
	g, err := c.OpenGroup()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("container %s: open its cgroup: %w", c.ID, err)
	}
	if err != nil || g == nil {
		if err := c.stopUnit(nil); err != nil {
			return err
		}
		c.parentsAfter(c.parentsMade())
		return nil
	}
	defer g.Close()
	return c.clearGroup(g, leave)
}

// clearGroup ends what of the container is left in its cgroup, and removes that.
func (c *Container) clearGroup(g *cgroup.Group, leave bool) error {
	if c.Pid == 0 && !abandoned(g) {
		// Its maker was killed between the intent and the making: what is there is
		// another owner's.
		return nil
	}
	if left, err := c.leftToOthers(g, leave); left || err != nil {
		return err
	}
	if err := c.stopUnit(g); err != nil {
		return err
	}
	return c.endGroup(g)
}

// leftToOthers reports whether other processes are in the cgroup, which is left to them; or
// refuses to leave it.
func (c *Container) leftToOthers(g *cgroup.Group, leave bool) (bool, error) {
	others, err := c.others(g)
	if err != nil {
		return false, fmt.Errorf("container %s: %w", c.ID, err)
	}
	if len(others) == 0 {
		return false, nil
	}
	inUse := fmt.Sprintf("container %s: its cgroup %s is in use by %s, while the container's own processes have ended", c.ID, c.Cgroup.Path, processNames(others))
	if !leave {
		return false, fmt.Errorf("%s (end those, or use --force, which leaves them and the cgroup)", inUse)
	}
	c.runtime.warn("%s: the cgroup is left to them", inUse)
	c.parentsAfter(c.Cgroup.Made)
	return true, nil
}

// endGroup ends what is left in the cgroup and removes it, as far as it was made for
// the container.
func (c *Container) endGroup(g *cgroup.Group) error {
	end := g.Purge
	if c.ownPids() {
		end = g.Destroy // there is no process left to kill
	}
	if err := end(); err != nil {
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

// parentsAfter minds the parents that were made, for this cgroup or for others beside it, when this
// one has been removed.
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
