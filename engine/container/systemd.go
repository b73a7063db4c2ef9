package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/engine/plan"
	"golang.org/x/sys/unix"
)

// A bus is a systemd that is being asked what it is, while other things are done.
type bus struct {
	*systemd.Manager
	told chan struct{}
	is   systemd.Description
	err  error
}

// dialSystemd begins to talk to the systemd that makes our units.
func dialSystemd() *bus {
	b := &bus{Manager: newManager(), told: make(chan struct{})}
	go func() {
		defer close(b.told)
		b.is, b.err = b.Describe(context.Background())
	}()
	return b
}

func newManager() *systemd.Manager {
	return systemd.New(systemd.Options{User: host.UserSystemd()})
}

// tell adds what systemd has answered to the facts of the host.
func (b *bus) tell(h *machine) error {
	<-b.told
	if b.err != nil {
		return b.err
	}
	h.Systemd = host.SystemdOf(h.Cgroups, b.is.Version, b.is.ControlGroup, host.UserSystemd())
	return nil
}

// awaitUnit lets the child wait for its unit, since systemd starts no scope
// without a process, and tells the Program the directories that there will be.
func awaitUnit(p *plan.Plan, h *machine, f *compile.Facts) {
	c := &p.Cgroup
	f.AwaitCgroup = true
	place := func(h *cgroup.Hierarchy) string { return path.Join(h.Mountpoint, c.Path, c.Payload) }
	f.CgroupDirs = cgroupDirs(h.Cgroups, place)
	for _, hierarchy := range h.Cgroups.Hierarchies() {
		switch {
		case hierarchy.Version == 1 && c.Unit.Systemd.User:
			// A user's manager has no cgroups there but its own, which it has put
			// the process into.
		case hierarchy.Version == 1:
			f.Tasks = append(f.Tasks, place(hierarchy)+"/tasks")
		}
	}
}

// startUnit makes the unit around the child, which waits for it, and does to its
// cgroup what systemd cannot be asked to. The Record names it already.
func (m *maker) startUnit() error {
	defer m.runtime.Trace.Begin("let systemd start the unit").End()
	c := &m.plan.Cgroup
	if err := m.unitPlaceFree(); err != nil {
		return blame(c.At, err)
	}
	if err := m.bus.Start(context.Background(), c.Unit.Unit, unitProperties(c.Unit, m.child.Pid)); err != nil {
		return unitError(c.At, err)
	}
	m.unit = true
	made, err := m.unitCgroup()
	if err != nil {
		return blame(c.At, err)
	}
	if made != c.Path {
		return blame(c.At, fmt.Errorf("unit %s: systemd has put it at %s, instead of %s (systemctl show %s shows its Slice)",
			c.Unit.Unit, made, c.Path, c.Unit.Unit))
	}
	if !c.Unit.IsSlice() {
		m.dropStale(c.Path)
	}
	// No controllers are asked for: those that the unit has are systemd's to give,
	// and what a write below needs besides is enabled for it.
	options := []cgroup.Option{cgroup.Force(), cgroup.Enable()}
	if c.Unit.Systemd.User {
		options = append(options, cgroup.WherePermitted())
	}
	g, err := m.host.Cgroups.Create(c.Path, options...)
	if err != nil {
		return blame(c.At, err)
	}
	m.group, m.opened = &group{g}, g
	m.Cgroup.Made, m.Cgroup.Freezers = g.Made(), freezers(g)
	if c.Payload != "" {
		if err := m.moveInside(options); err != nil {
			return blame(c.At, err)
		}
	}
	if !c.Unit.IsSlice() { // in which others may be
		if err := m.liftLimitOfProcesses(g); err != nil {
			return err
		}
	}
	return m.limitGroup(g)
}

// liftLimitOfProcesses does away with the limit that systemd has begun the unit with, until the
// container is ready: see limitsProcesses.
func (m *maker) liftLimitOfProcesses(g *cgroup.Group) error {
	var writes []ledger.Write
	for _, w := range m.plan.Cgroup.Writes {
		if limitsProcesses(w) {
			w.Value = "max"
			writes = append(writes, w)
		}
	}
	if _, err := g.Apply(writes); err != nil {
		return field("config.json: "+plan.ResourcesAt, err)
	}
	return nil
}

// unitCgroup is where systemd has put the unit: where the child is, which spares systemd a
// question. No process is put into a slice.
func (m *maker) unitCgroup() (string, error) {
	c := &m.plan.Cgroup
	if c.Unit.IsSlice() {
		return m.bus.ControlGroup(context.Background(), c.Unit.Unit)
	}
	home := "unified"
	for _, h := range m.host.Cgroups.Hierarchies() {
		if h.Name == "systemd" {
			home = "name=systemd" // systemd's own, on version 1 and hybrid hosts
		}
	}
	g, err := m.host.Cgroups.OfProcess(m.child.Pid, cgroup.Only(home))
	if err != nil {
		return "", err
	}
	defer g.Close()
	return g.Path(), nil
}

// unitPlaceFree refuses a place for the unit's cgroup where the child would meet others,
// or stand still: systemd takes a directory that is there as it is, and puts the child
// into it, also where it is frozen.
func (m *maker) unitPlaceFree() error {
	for at := m.plan.Cgroup.Path; at != "/"; at = path.Dir(at) {
		g, err := m.host.Cgroups.Open(at, cgroup.Force())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		defer g.Close()
		if at == m.plan.Cgroup.Path && !m.plan.Cgroup.Unit.IsSlice() {
			if err := (&group{g}).refuseUsed(); err != nil {
				return err
			}
		}
		frozen, err := g.Frozen()
		if err == nil && frozen {
			err = fmt.Errorf("cgroup %s: %w (thaw it first)", at, cgroup.ErrFrozen)
		}
		return err
	}
	return nil
}

// moveInside puts the child into the cgroup inside of the unit's, and gives that
// the unit's controllers: for which no process may be left in the unit's own.
func (m *maker) moveInside(options []cgroup.Option) error {
	c := &m.plan.Cgroup
	at := path.Join(c.Path, c.Payload)
	inner, err := m.host.Cgroups.Create(at, options...)
	if err != nil {
		return err
	}
	defer inner.Close()
	if err := inner.Join(m.child.Pid); err != nil {
		return err
	}
	if unified := m.host.Cgroups.Unified(); unified != nil {
		have, err := os.ReadFile(path.Join(unified.Mountpoint, c.Path, "cgroup.controllers"))
		if err != nil {
			return err
		}
		again, err := m.host.Cgroups.Create(at, append(options, cgroup.Enable(strings.Fields(string(have))...))...)
		if err != nil {
			return err
		}
		again.Close()
	}
	if user := hostID(m.plan.Process.UID, m.plan.IDs.UID); c.Delegate && int(user) != m.host.UID {
		return inner.Delegate(int(user))
	}
	return nil
}

// dropStale removes what an earlier unit of the name has left in the hierarchies
// that systemd does not look after, with limits that were not asked for now. In
// the others our child is, so that nothing can be removed.
func (m *maker) dropStale(at string) {
	for _, h := range m.host.Cgroups.Hierarchies() {
		if h.Version == 1 {
			_ = unix.Rmdir(path.Join(h.Mountpoint, at))
		}
	}
}

// unitProperties gives all that a unit is started with, for the one call. Of a
// property that is there twice the config's annotation wins.
func unitProperties(u *plan.Unit, pid int) []systemd.Property {
	properties := systemd.Base(u.Place, u.Description, pid)
	properties = append(properties, systemd.Resources(u.Properties)...)
	if u.DevicePolicy != "" {
		properties = append(properties, systemd.Devices(u.DevicePolicy, u.DeviceAllow)...)
	}
	return systemd.Override(properties, systemd.Annotations(u.Annotations))
}

// unitError names the entry of the config that systemd complains about.
func unitError(at string, err error) error {
	var e *systemd.Error
	if errors.As(err, &e) && e.Source == "" {
		return blame(at, err)
	}
	return err
}

// register makes the container known to systemd-machined, if it is to be.
func (m *maker) register() error {
	if m.plan.Cgroup.Unit == nil || m.plan.Cgroup.Unit.Machine == nil {
		return nil
	}
	machine := m.plan.Cgroup.Unit.Machine
	err := m.bus.Register(context.Background(), systemd.Machine{Name: machine.Name, ID: machine.ID, Leader: m.Pid, Root: m.Rootfs})
	if err != nil {
		return blame(machine.At, err)
	}
	return nil
}

// undoUnit takes the unit away of a container that could not be made.
func (m *maker) undoUnit() error {
	if m.bus == nil {
		return nil
	}
	defer m.bus.Close()
	if !m.unit {
		return nil
	}
	return m.bus.Stop(context.Background(), m.Cgroup.Unit)
}

// stopUnit ends the unit with all that is in it, and makes systemd forget it. If
// systemd does not answer, the container is deleted all the same: without a process a scope ends
// by itself. g is nil where the unit has no cgroup any more.
func (c *Container) stopUnit(g *cgroup.Group) error {
	defer c.runtime.Trace.Begin("let systemd stop the unit").End()
	if c.Cgroup.Unit == "" {
		return nil
	}
	ctx := context.Background()
	bus := newManager()
	defer bus.Close()
	if g != nil {
		if frozen, err := g.Frozen(); err == nil && frozen {
			// Of a unit that it takes for frozen systemd does not notice that its cgroup has become
			// empty, and the unit stays for good.
			_ = bus.Thaw(ctx, c.Cgroup.Unit)
		}
		// systemd would ask each process to end, and wait for it.
		if err := g.Kill(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("container %s: %w", c.ID, err)
		}
	}
	if c.Pid == 0 {
		// Its maker was killed, before or after the unit was started.
		active, description, err := bus.Look(ctx, c.Cgroup.Unit)
		if err == nil && (active == "inactive" || description != plan.UnitDescription(c.ID)) {
			return nil
		}
	}
	if err := bus.Stop(ctx, c.Cgroup.Unit); err != nil {
		c.runtime.warn("container %s: %v", c.ID, err)
	}
	return nil
}

// freezeUnit lets systemd freeze the unit, where its cgroup is systemd's to
// freeze: systemd would not know of a freeze behind its back, and would wait for
// the frozen processes when it has something to do with them. It reports whether
// that was done.
func (c *Container) freezeUnit(freeze bool) bool {
	h, err := cgroup.Detect()
	if c.Cgroup.Unit == "" || err != nil || h.Mode() != cgroup.Unified {
		return false
	}
	bus := newManager()
	defer bus.Close()
	do := bus.Thaw
	if freeze {
		do = bus.Freeze
	}
	if err := do(context.Background(), c.Cgroup.Unit); err != nil {
		c.runtime.note("container %s: %v; its cgroup is used instead", c.ID, err)
		return false
	}
	return true
}

// UnitOOMKilled reports whether systemd has the container's unit on record as one that failed by an
// OOM kill.
func (c *Container) UnitOOMKilled() bool {
	if c.Cgroup.Unit == "" {
		return false
	}
	bus := newManager()
	defer bus.Close()
	is, err := bus.Properties(context.Background(), c.Cgroup.Unit, "Result")
	return err == nil && is["Result"] == "oom-kill"
}
