package container

import (
	"errors"
	"fmt"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/engine/plan"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// atStandstill lets systemd change the limits of the container's unit while the
// container's processes stand still, where it would cut them off from their devices
// in the middle of it: on cgroup v1 it writes all that it looks after again with each
// change of any limit (seen in 252), and of the devices it denies all, and then allows
// those of its list one by one. That list can be wider than the rules, so these are put
// in force again before the processes go on. rules is nil where they stay as they are.
func (c *Container) atStandstill(g *cgroup.Group, h *machine, rules *device.Policy, change func() error) error {
	if h.Cgroups.Controller("devices") == nil || h.Systemd.User {
		return change() // an ordinary user limits no access to devices
	}
	if rules == nil {
		var err error
		if rules, err = c.configDevices(); err != nil {
			return err
		}
	}
	frozen, err := g.Frozen()
	if err == nil && !frozen {
		if err = c.stop(g); err == nil {
			defer c.goOn(g)
		}
	}
	if err != nil {
		c.runtime.warn("container %s: its processes may be refused their devices for an instant: %v", c.ID, err)
	}
	return errors.Join(change(), g.SetDevices(*rules))
}

// configDevices are the rules for devices by the config.
func (c *Container) configDevices() (*device.Policy, error) {
	s, err := c.Config()
	if err != nil {
		return nil, err
	}
	linux := s.Linux
	if linux == nil {
		linux = &specs.Linux{}
	}
	list, _ := plan.DeviceRules(linux)
	rules, err := device.Fold(list)
	return &rules, err
}

// stop freezes the container for an update. That is recorded first: a command that finds
// the container frozen can tell that it was not paused, and lets it go on where the
// update was killed.
func (c *Container) stop(g *cgroup.Group) error {
	fd, err := unix.Openat(c.dir, standstillFile, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", standstillFile, err)
	}
	unix.Close(fd)
	if err = g.Freeze(); err != nil {
		c.goOn(g)
	}
	return err
}

func (c *Container) goOn(g *cgroup.Group) {
	if err := g.Thaw(); err != nil {
		c.runtime.warn("container %s: %v", c.ID, err)
		return // it stays on record
	}
	_ = unix.Unlinkat(c.dir, standstillFile, 0)
}

// atStand reports whether an update has stopped the container.
func (c *Container) atStand() bool { return c.Cgroup.Unit != "" && c.has(standstillFile) }

// endStandstill lets a container go on whose update was killed while it stood still. Its
// devices are those of its config again; the other limits may be the old or the new ones.
// The caller has the lock.
func (c *Container) endStandstill() error {
	g, err := c.OpenGroup()
	if err != nil || g == nil {
		return err
	}
	defer g.Close()
	rules, err := c.configDevices()
	if err != nil {
		return err
	}
	if err := g.SetDevices(*rules); err != nil {
		return fmt.Errorf("container %s: allow its devices again, of which an update was killed: %w", c.ID, err)
	}
	c.goOn(g)
	return nil
}

// paused reports whether a frozen container was paused by a command. An update that is at
// work has stopped it for an instant, and is not waited for; after one that was killed
// it is let go.
func (c *Container) paused() bool {
	if !c.atStand() {
		return true
	}
	var err error
	if c.locked {
		err = c.endStandstill()
	} else {
		var held bool
		if held, err = c.tryAcquire(); held && c.atStand() {
			err = c.endStandstill()
		}
		c.Release()
	}
	if err != nil {
		c.runtime.warn("%v", err)
	}
	return false
}
