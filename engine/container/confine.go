package container

import (
	"fmt"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/internal/sys"
	"golang.org/x/sys/unix"
)

// Confine takes from this process, which has started a container and stays with
// it, what the rest of the container's life does not need: it can then change
// files in the state root and in cgroups alone, and execute nothing. Where hooks are
// still to be run it is left as it is, since those may do anything.
func (c *Created) Confine() error {
	s, err := c.Config()
	if err != nil {
		return err
	}
	if s.Hooks != nil && len(s.Hooks.Poststop) > 0 || len(c.Rdt) > 0 {
		return nil
	}
	beneath := []string{c.runtime.Root}
	if c.Cgroup.Path != "" {
		h, err := cgroup.Detect()
		if err != nil {
			return err
		}
		for _, hierarchy := range h.Hierarchies() {
			beneath = append(beneath, hierarchy.Mountpoint)
		}
	}
	const all = ^uint64(0) // a delegated cgroup may have any owner
	if err := sys.Confine(all, beneath...); err != nil {
		return fmt.Errorf("container %s: confine the runtime: %w", c.ID, err)
	}
	return nil
}

// ConfineToSignals takes from a process that has added one to a container, and
// stays with it, all that waiting for it and passing signals on to it does not
// need.
func ConfineToSignals() error {
	if err := sys.Confine(1 << unix.CAP_KILL); err != nil {
		return fmt.Errorf("confine the runtime: %w", err)
	}
	return nil
}
