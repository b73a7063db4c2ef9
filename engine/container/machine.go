package container

import (
	"fmt"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/engine/host"
)

// A machine is what a Plan is made from, and the cgroup hierarchies to carry it out in.
type machine struct {
	*host.Host
	Cgroups *cgroup.Host
}

func lookAtMachine() (*machine, error) {
	groups, err := cgroup.Detect()
	if err != nil {
		return nil, fmt.Errorf("find the cgroup hierarchies: %w", err)
	}
	return machineWith(groups)
}

// machineWith is lookAtMachine where the hierarchies have been found already, which is
// the larger part of it.
func machineWith(groups *cgroup.Host) (*machine, error) {
	h, err := host.Probe(groups)
	if err != nil {
		return nil, err
	}
	return &machine{Host: h, Cgroups: groups}, nil
}
