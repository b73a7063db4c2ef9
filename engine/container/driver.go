package container

import (
	"context"
	"path"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/settings"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// choosePlace decides what makes the container's cgroup, and finds out what the plan has to know of
// it. Where the client has chosen, by an option or by an absolute cgroupsPath, its choice stays.
// Else a service that its manager has delegated keeps to its own subtree, systemd makes a scope
// where it is the init system, and elsewhere it is a directory below one parent.
func (r *Runtime) choosePlace(s *specs.Spec, h *machine, o *plan.Options, askSystemd func(*machine) error) error {
	if r.NoCgroup {
		return nil
	}
	named := ""
	if s.Linux != nil {
		named = s.Linux.CgroupsPath
	}
	if r.Driver == settings.Systemd {
		o.SystemdCgroup = true
		return askSystemd(h)
	}
	if path.IsAbs(named) {
		return nil
	}
	booted := systemd.Booted()
	if booted && h.UID == 0 {
		// Only systemd delegates to root, who may write everywhere.
		base, err := h.Cgroups.Base()
		if err != nil {
			return err
		}
		h.CgroupBase = base
	}
	if r.Driver == settings.Cgroupfs || !booted || h.islandOf(r) {
		return nil
	}
	if err := askSystemd(h); err != nil {
		if h.UID != 0 || h.InUserNS {
			r.note("a user's systemd does not answer, and the cgroup is made without it: %v", err)
			h.Systemd = nil
			return nil
		}
		return err
	}
	if h.Systemd.User && !h.belowManager() {
		r.note("this process is outside of the cgroups of the user's systemd, and could put none into a scope there later (exec): the cgroup is made without it")
		h.Systemd = nil
		return nil
	}
	o.SystemdCgroup, o.PathNamesUnit = true, true
	return nil
}

// belowManager reports whether this process is below the cgroup of the user's manager. From
// outside, such as from the scope of a login session, an ordinary user can't move a process into
// it: that takes write access to the common ancestor (cgroups(7), "Delegation containment").
func (h *machine) belowManager() bool {
	own, err := h.Cgroups.OfProcess(0, cgroup.Force())
	if err != nil {
		return false
	}
	defer own.Close()
	return strings.HasPrefix(own.Path(), strings.TrimSuffix(h.Systemd.Root, "/")+"/")
}

// islandOf reports whether the unit around this process is delegated to it. An ordinary user's
// manager marks no delegations: it is asked.
func (h *machine) islandOf(r *Runtime) bool {
	if h.CgroupBase == "" || h.CgroupBase == "/" {
		return false
	}
	if h.UID == 0 && !h.InUserNS {
		return true
	}
	if strings.HasSuffix(h.CgroupBase, ".slice") {
		return true // handed over by its owner, and no unit of theirs
	}
	bus := newManager()
	defer bus.Close()
	delegated, err := bus.Delegates(context.Background(), h.CgroupBase)
	if err != nil {
		r.note("%v", err)
		return true // nothing else would make a cgroup for us
	}
	return delegated
}

// askSystemd waits for what systemd says of itself.
func (m *maker) askSystemd(h *machine) error {
	if m.bus == nil {
		m.bus = dialSystemd()
	}
	err := m.bus.tell(h)
	if err != nil {
		m.bus.Close()
		m.bus = nil
	}
	return err
}

// hangUp ends the connection to systemd, if there is one.
func (m *maker) hangUp() {
	if m.bus != nil {
		m.bus.Close()
	}
}
