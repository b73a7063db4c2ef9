package placement

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
)

// Supervisor is the cgroup of the program itself, on an island.
const Supervisor = "supervisor"

// Tree is a delegated cgroup in which the payloads are.
type Tree struct {
	// Path is the delegated cgroup, below the mount points.
	Path string
	host *cgroup.Host
}

// Island makes the delegated unit that this process is in the place for its
// payloads. The process moves into supervisor/ with any other process in the unit's
// own cgroup: one that gives controllers to its children may hold no processes.
func Island(h *cgroup.Host) (*Tree, error) {
	own, err := h.OfProcess(0)
	if err != nil {
		return nil, fmt.Errorf("find the own cgroup: %w", err)
	}
	defer own.Close()
	at := own.Path()
	if path.Base(at) == Supervisor {
		at = path.Dir(at) // we have moved already, before a restart in place
	}
	inner, err := h.Create(path.Join(at, Supervisor), cgroup.Enable())
	if err != nil {
		return nil, fmt.Errorf("make an island of %s: %w", at, err)
	}
	defer inner.Close()
	unitGroup, err := h.Open(at)
	if err != nil {
		return nil, err
	}
	defer unitGroup.Close()
	pids, err := unitGroup.Procs()
	if err != nil {
		return nil, fmt.Errorf("make an island of %s: %w", at, err)
	}
	for _, pid := range pids {
		if err := inner.Join(pid); err != nil {
			return nil, fmt.Errorf("make an island of %s: %w", at, err)
		}
	}
	return &Tree{Path: at, host: h}, nil
}

// Territory starts a delegated scope with a first process in it, which is moved on
// into payload-NAME: systemd starts no scope that is empty, and a scope ends with
// its last process. name is the scope's, as "fleet.scope"; a scope of it that runs
// already is used as it is. The first process must belong to the caller and wait
// until Territory comes back.
func Territory(ctx context.Context, m *systemd.Manager, h *cgroup.Host, place unit.Place, first int, name string) (*Tree, error) {
	if place.IsSlice() {
		return nil, errors.New("a territory is a scope: slices cannot be delegated")
	}
	at, err := m.ControlGroup(ctx, place.Unit)
	if err != nil {
		if err = m.Start(ctx, place.Unit, systemd.Base(place, "territory of payloads", first)); err != nil {
			return nil, err
		}
		if at, err = m.ControlGroup(ctx, place.Unit); err != nil {
			return nil, err
		}
	}
	t := &Tree{Path: at, host: h}
	payload, err := t.Payload(name)
	if err != nil {
		return nil, err
	}
	defer payload.Close()
	return t, payload.Join(first)
}

// Payload makes a cgroup for one payload, with whatever controllers the delegation
// has. Its processes are put into it, or into cgroups below it; Destroy of the
// group ends it. The name may be any: what the kernel would take for a file of
// its own cannot come of it.
func (t *Tree) Payload(name string) (*cgroup.Group, error) {
	if name == "" || path.Base(name) != name {
		return nil, fmt.Errorf("payload %q: it is not the name of a cgroup", name)
	}
	return t.host.Create(path.Join(t.Path, "payload-"+name))
}
