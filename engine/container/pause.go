package container

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/berth-runtime/berth/cgroup"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Pause freezes all processes of the container.
func (c *Container) Pause() error {
	defer c.runtime.Trace.Begin("pause").End()
	if c.Cgroup.Unit != "" {
		// An update that has stopped it (see atStandstill) would let it go again.
		if err := c.hold(); err != nil {
			return err
		}
		defer c.Release()
	}
	switch status := c.status(); status {
	case specs.StateRunning, specs.StateCreated:
	case Paused:
		return fmt.Errorf("cannot pause container %s: it is %s (%w)", c.ID, status, ErrPaused)
	default:
		return fmt.Errorf("cannot pause container %s: it is %s (%w)", c.ID, status, ErrNotRunning)
	}
	if c.freezeUnit(true) {
		return nil
	}
	return c.WithGroup((*cgroup.Group).Freeze)
}

// Resume lets them go on.
func (c *Container) Resume() error {
	defer c.runtime.Trace.Begin("resume").End()
	if c.status() != Paused {
		return fmt.Errorf("cannot resume container %s: %w", c.ID, ErrNotPaused)
	}
	if c.freezeUnit(false) && !c.frozen() {
		return nil
	}
	return c.WithGroup((*cgroup.Group).Thaw)
}

// delegatedScope is how an ordinary user gets a cgroup.
const delegatedScope = "systemd-run --user --scope -p Delegate=yes gives an ordinary user one"

// NoGroup says what a container lacks that was made without a cgroup.
func (c *Container) NoGroup(forWhat string) error {
	return fmt.Errorf("container %s has no cgroup of its own, which %s needs: it was created with --cgroup-manager disabled, "+
		"or by a user who can't create one (%s)", c.ID, forWhat, delegatedScope)
}

func (c *Container) WithGroup(do func(*cgroup.Group) error) error {
	g, err := c.OpenGroup()
	if err != nil {
		return err
	}
	if g == nil {
		return c.NoGroup("pausing, limits and statistics")
	}
	defer g.Close()
	return do(g)
}

// Pids lists the processes of the container, by its cgroup; none where it has ended.
func (c *Container) Pids() ([]int, error) {
	var pids []int
	if c.Cgroup.Path == "" && c.status() == specs.StateStopped {
		return pids, nil
	}
	err := c.WithGroup(func(g *cgroup.Group) (err error) {
		pids, err = g.AllProcs()
		return err
	})
	if errors.Is(err, fs.ErrNotExist) && !c.Alive() {
		return nil, nil // systemd has removed the cgroup with the unit, which ends with its last process
	}
	return pids, err
}
