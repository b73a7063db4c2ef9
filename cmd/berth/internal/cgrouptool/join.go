package cgrouptool

import (
	"errors"

	"github.com/berth-runtime/berth/cgroup"
)

// Join moves processes into cgroups; pid 0 is this process. Each process comes
// into all of them or stays where it is, and one that can't be moved does not
// keep the others from it.
func (t *Tools) Join(targets []Target, pids []int) error {
	var groups []*cgroup.Group
	for _, target := range targets {
		g, err := t.Open(target)
		if err != nil {
			return err
		}
		defer g.Close()
		if err := t.mayChange("put a process into", g); err != nil {
			return err
		}
		groups = append(groups, g)
	}
	var failed []error
	for _, pid := range pids {
		failed = append(failed, cgroup.Join(pid, groups...))
	}
	return errors.Join(failed...)
}
