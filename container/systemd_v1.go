package container

import (
	"errors"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/host"
)

// atStandstill lets systemd change the limits of the container's unit while the
// container's processes stand still, where it would cut them off from their devices
// in the middle of it: on cgroup v1 it writes all that it looks after anew with each
// change of any limit (seen in 252), and of the devices it denies all, and then allows
// those of its list one by one. That list can be wider than the rules, so these are put
// in force again before the processes go on. rules is nil where they stay as they are.
func (c *Container) atStandstill(g *cgroup.Group, h *host.Host, rules *device.Policy, change func() error) error {
	if h.Cgroups.Controller("devices") == nil {
		return change()
	}
	if rules == nil {
		s, err := c.config()
		if err != nil {
			return err
		}
		if s.Linux == nil || s.Linux.Resources == nil || len(s.Linux.Resources.Devices) == 0 {
			return change() // systemd knows nothing of its devices
		}
		policy, err := device.Fold(device.WithDefaults(s.Linux.Resources.Devices))
		if err != nil {
			return err
		}
		rules = &policy
	}
	frozen, err := g.Frozen()
	if err == nil && !frozen {
		if err = g.Freeze(); err == nil {
			defer g.Thaw()
		}
	}
	if err != nil {
		c.runtime.warn("container %s: its processes may be refused their devices for an instant: %v", c.ID, err)
	}
	return errors.Join(change(), g.SetDevices(*rules))
}
