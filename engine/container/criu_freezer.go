package container

import (
	"errors"
	"fmt"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
)

// handOver leaves the container's freezer to criu, and names it: a version 1 one where
// there is one, and a version 2 one only below /sys/fs/cgroup, where alone criu looks
// for it. What is returned has the container stand or run as it did before, unless it
// is gone.
func (d *dumper) handOver() (takeBack func() error, err error) {
	g, err := d.OpenGroup()
	if err != nil || g == nil {
		return func() error { return nil }, err
	}
	v1, v2 := g.Directory("freezer"), g.Directory("unified")
	if v1 != "" {
		d.criu.FreezeCgroup = v1
	} else if strings.HasPrefix(v2, "/sys/fs/cgroup/") {
		d.criu.FreezeCgroup = v2
	}
	paused, err := g.Frozen()
	if err != nil {
		return nil, err
	}
	back := g.Thaw // criu may have failed with all of them frozen
	switch {
	case paused && v1 != "" && v2 != "":
		if back, err = swapFreezers(g); err != nil {
			return nil, err
		}
	case paused:
		back = g.Freeze
	}
	return func() error {
		if !d.Alive() {
			return nil // criu has ended it
		}
		if err := back(); err != nil {
			return fmt.Errorf("container %s: %w", d.ID, err)
		}
		return nil
	}, nil
}

// swapFreezers is for a hybrid host, where pausing freezes by version 2. criu lets the
// processes run some of its code, for which it thaws version 1's freezer, and what
// stands by the other never gets to it. So version 1's freezes them as well, and then
// version 2's lets go: at no instant do they run.
func swapFreezers(g *cgroup.Group) (back func() error, err error) {
	v1, err := g.Host().Open(g.Path(), cgroup.Force(), cgroup.Only("freezer"))
	if err != nil {
		return nil, err
	}
	v2, err := g.Host().Open(g.Path(), cgroup.Force(), cgroup.Only("unified"))
	if err != nil {
		v1.Close()
		return nil, err
	}
	back = func() error {
		defer v1.Close()
		defer v2.Close()
		return errors.Join(v2.Freeze(), v1.Thaw())
	}
	if err = v1.Freeze(); err == nil {
		err = v2.Thaw()
	}
	if err != nil {
		return nil, errors.Join(err, back())
	}
	return back, nil
}
