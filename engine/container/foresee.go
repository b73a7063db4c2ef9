package container

import (
	"fmt"

	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/engine/spec"
)

// Foreseen is what Create would do.
type Foreseen struct {
	Plan     *plan.Plan
	Program  *program.Program
	Warnings []string
}

// Foresee finds what Create would do with these options: the Plan, and the Program that
// would run inside. It touches nothing and needs no rights. systemdVersion is what to take
// systemd for where it is to make the cgroup; with 0 it is asked.
func (r *Runtime) Foresee(id string, o *CreateOptions, systemdVersion int) (*Foreseen, error) {
	f := &Foreseen{}
	quiet := *r
	quiet.Warn = func(message string) { f.Warnings = append(f.Warnings, message) }
	m := &maker{o: o, Container: &Container{runtime: &quiet}}
	config, err := quiet.planned(m, id, func(h *machine) error {
		assumeSystemd(h, systemdVersion)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, unknown := range spec.UnknownKeys(config) {
		quiet.warn("config.json: %s", unknown.Error())
	}
	if m.spec.Process == nil {
		created := *o
		created.Attached = false // there is nothing to run
		m.o = &created
	}
	m.Record = m.intent()
	if err := m.prepare(looker{m}); err != nil {
		return nil, err
	}
	f.Plan = m.plan
	f.Program, err = m.spawn.foresee(m.compile)
	return f, err
}

// PlanAgain plans the container again from the config that it was made from, with its
// cgroup or unit.
func (c *Container) PlanAgain() (*plan.Plan, error) {
	s, err := c.Config()
	if err != nil {
		return nil, err
	}
	h, err := lookAtMachine()
	if err != nil {
		return nil, err
	}
	if c.Systemd {
		assumeSystemd(h, 0)
	}
	return plan.New(s, h.Host, plan.Options{
		ID: c.ID, Bundle: c.Bundle, SystemdCgroup: c.Systemd, NoCgroup: c.Cgroup.Path == "", NoPivot: c.NoPivot,
		Placed: &plan.Placed{Path: c.Cgroup.Path, Unit: c.Cgroup.Unit},
	})
}

// latestSystemd is what explain takes systemd for where there is none to ask:
// one that has all the properties that we know of.
const latestSystemd = 257

// assumeSystemd asks systemd what it is, or takes it for what is said, and notes
// that it did.
func assumeSystemd(h *machine, version int) {
	user := host.UserSystemd()
	root := "/"
	if user {
		root = fmt.Sprintf("/user.slice/user-%d.slice/user@%d.service", h.UID, h.UID)
	}
	assumed := "its version as given"
	if version == 0 {
		b := dialSystemd()
		defer b.Close()
		if b.tell(h) == nil {
			return
		}
		version, assumed = latestSystemd, "assumed, as none answers here"
	}
	h.Systemd = host.SystemdOf(h.Cgroups, version, root, user)
	h.Systemd.Assumed = assumed
	if user && h.Systemd.Controllers == nil {
		h.Systemd.Controllers = []string{"cpu", "cpuset", "io", "memory", "pids"}
	}
}
