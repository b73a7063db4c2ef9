package container

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/atomicfile"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Changes are what Update changes of a container; what is not in them stays.
type Changes struct {
	// Resources are new limits, in the sense of config.json: 0 leaves most of
	// them as they are, and -1 takes them off. A list of device rules replaces
	// the one there is.
	Resources *specs.LinuxResources
	// Source is what messages call the place that Resources are from: "FILE: /memory/limit: …".
	Source string
	// L3CacheSchema and MemBwSchema are lines for the container's resctrl group.
	L3CacheSchema, MemBwSchema string
}

// Update changes the limits of a container that has a process, and remembers
// them with its config. A change that is refused leaves all limits as they were.
func (c *Container) Update(changes *Changes) error {
	defer c.runtime.Trace.Begin("update").End()
	if err := c.hold(); err != nil {
		return err
	}
	defer c.Release()
	switch status := c.status(); status {
	case specs.StateCreated, specs.StateRunning, Paused:
	default:
		return fmt.Errorf("cannot update container %s: it is %s (%w)", c.ID, status, ErrNotRunning)
	}
	s, err := c.Config()
	if err != nil {
		return err
	}
	if s.Linux == nil {
		s.Linux = &specs.Linux{}
	}
	undo, err := c.changeRdt(s.Linux, changes)
	if err != nil {
		return err
	}
	if changes.Resources != nil {
		if err := c.changeLimits(s.Linux, changes.Resources, cmp.Or(changes.Source, "resources")+": "); err != nil {
			return takenBack(err, undo)
		}
	}
	if err := atomicfile.Write(c.dir, configFile, spec.Format(s, ""), 0o600); err != nil {
		return fmt.Errorf("container %s: the new limits are set, but could not be recorded: %w", c.ID, err)
	}
	return nil
}

// changeLimits sets new limits, and puts them into the config.
func (c *Container) changeLimits(linux *specs.Linux, changes *specs.LinuxResources, source string) error {
	warnings, err := spec.CheckResources(changes)
	if err != nil {
		return fmt.Errorf("%s%w", source, err)
	}
	for _, w := range warnings {
		c.runtime.warn("%s", source+w.Error())
	}
	wanted := *changes
	wanted.Memory = checkedMemory(linux.Resources, changes.Memory)
	if len(wanted.Devices) > 0 {
		// With its nodes and what every container must be able to use, as when it was made.
		wanted.Devices, _ = device.ForContainer(linux.Devices, wanted.Devices)
	}
	return c.WithGroup(func(g *cgroup.Group) error {
		report, err := c.setLimits(g, &wanted)
		for _, w := range report.Warnings {
			c.runtime.warn("%s%s", source, w)
		}
		for _, d := range report.Differences {
			c.runtime.note("%s%s", source, d)
		}
		if err != nil {
			return fmt.Errorf("%s%w", source, err)
		}
		layout := g.Host().Layout()
		merged := mergeResources(linux.Resources, changes, memoryOnV2(layout))
		// The container is planned again from its config, by exec for one: that
		// must not fail for what only a living cgroup can have.
		var refused ledger.Errors
		if _, _, err := ledger.Translate(merged, layout, ledger.Options{}); errors.As(err, &refused) {
			c.runtime.warn("the new limits are set, but could not be recorded: %v", refused)
			return nil
		}
		linux.Resources = merged
		return nil
	})
}

// checkedMemory carries the container's checkBeforeUpdate over to an update that
// says nothing of it.
func checkedMemory(had *specs.LinuxResources, m *specs.LinuxMemory) *specs.LinuxMemory {
	if m == nil || m.CheckBeforeUpdate != nil || had == nil || had.Memory == nil {
		return m
	}
	checked := *m
	checked.CheckBeforeUpdate = had.Memory.CheckBeforeUpdate
	return &checked
}

func memoryOnV2(l ledger.Layout) bool {
	for _, controller := range l.Unified {
		if controller == "memory" {
			return true
		}
	}
	return false
}
