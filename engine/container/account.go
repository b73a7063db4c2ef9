package container

import (
	"github.com/berth-runtime/berth/cgroup"
)

// Account reads the counters of the container's cgroup, also when no process is
// left in it. Without a cgroup of its own there are none, and no error.
func (c *Container) Account(parts ...cgroup.Part) (*cgroup.Stats, error) {
	g, err := c.OpenGroup()
	if err != nil || g == nil {
		return nil, err
	}
	defer g.Close()
	return g.Stats(parts...)
}
