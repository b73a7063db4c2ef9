package cgrouptool

import (
	"errors"
	"path"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
)

// Join moves processes into cgroups; pid 0 is this process. Each process comes
// into all of them or stays where it is, and one that can't be moved does not
// keep the others from it. Where no controllers are named, a process stays in its
// unit of systemd in the hierarchies without any, by which systemd knows it.
func (t *Tools) Join(targets []Target, pids []int) error {
	var failed []error
	for _, pid := range pids {
		failed = append(failed, t.join(targets, pid))
	}
	return errors.Join(failed...)
}

func (t *Tools) join(targets []Target, pid int) error {
	var groups []*cgroup.Group
	for _, target := range targets {
		var err error
		if target.Controllers == nil {
			if target.Controllers, err = t.besidesUnit(target, pid); err != nil {
				return err
			}
		}
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
	return cgroup.Join(pid, groups...)
}

// besidesUnit names the hierarchies in which a process may be moved to the target: nil
// for all, where systemd loses nothing by it.
func (t *Tools) besidesUnit(target Target, pid int) ([]string, error) {
	at, _, err := t.resolve(target)
	if err != nil {
		return nil, err
	}
	var keys []string
	hierarchies := t.Host.Hierarchies()
	for _, h := range hierarchies {
		if len(h.Controllers) == 0 && len(hierarchies) > 1 && t.leavesUnit(h, pid, at) {
			continue
		}
		keys = append(keys, h.String())
	}
	if len(keys) == len(hierarchies) {
		return nil, nil
	}
	return keys, nil
}

// leavesUnit reports whether a move to a path would take a process out of its unit.
func (t *Tools) leavesUnit(h *cgroup.Hierarchy, pid int, to string) bool {
	g, err := t.Host.OfProcess(pid, cgroup.Only(h.String()))
	if err != nil {
		return false // the move itself says what is wrong
	}
	defer g.Close()
	unit := g.Owner().Unit
	if unit == "" {
		return false
	}
	at := g.Path()
	for at != "/" && strings.TrimPrefix(path.Base(at), "_") != strings.TrimPrefix(unit, "_") {
		at = path.Dir(at)
	}
	return !strings.HasPrefix(to+"/", at+"/")
}
