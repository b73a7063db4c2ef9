package plan

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/config/allocatable"
)

// Plan is what would be done.
type Plan struct {
	Config    *config.Config // with the driver's defaults
	Driver    config.Driver
	Facts     *Facts
	Resources allocatable.Table
	Places    []Place
	Steps     []Step
	// Problems keep the plan from being applied; each says how to mend it.
	Problems []error
	// Warnings do not.
	Warnings []string
}

// Role is what a cgroup is for.
type Role string

// The roles.
const (
	System    Role = "system"
	Kube      Role = "kube"
	Kubelet   Role = "kubelet"
	Workloads Role = "workloads"
)

// Place is a cgroup of the plan.
type Place struct {
	Role Role
	// Path is the cgroup's, below the root of the hierarchies.
	Path string
	// Slice is its unit; "" under cgroupfs.
	Slice string
	// Enforce is what becomes a limit there.
	Enforce config.Enforce
	// Cause is the entry that names it.
	Cause string
}

// ErrWrongDriver says why there is no cgroupfs driver under systemd.
var ErrWrongDriver = errors.New("systemd is the init system here and owns the tree: it doesn't keep cgroups created behind its back, and processes must not be moved out of their units; use the systemd driver")

// DriverFor decides what creates cgroups.
func DriverFor(c *config.Config, init config.Driver) (config.Driver, error) {
	switch {
	case c.Driver == config.Auto:
		return init, nil
	case c.Driver == config.Systemd && init != config.Systemd:
		return "", &config.Error{Cause: c.Cause("cgroup-driver"), Err: errors.New("systemd is not the init system here: use cgroupfs, or auto")}
	case c.Driver == config.Cgroupfs && init == config.Systemd:
		return "", &config.Error{Cause: c.Cause("cgroup-driver"), Err: ErrWrongDriver}
	}
	return c.Driver, nil
}

// Places gives the cgroups of a configuration that is made for a driver.
func Places(c *config.Config) ([]Place, error) {
	list := []Place{
		{Role: System, Path: c.SystemContainer, Enforce: c.SystemEnforce, Cause: c.Cause("system-container")},
		{Role: Kube, Path: c.KubeContainer, Enforce: c.KubeEnforce, Cause: c.Cause("kube-container")},
		{Role: Kubelet, Path: c.ResourceContainer, Enforce: config.Nothing, Cause: c.Cause("resource-container")},
		{Role: Workloads, Path: c.Workloads(), Enforce: c.PodsEnforce, Cause: c.Cause("cgroup-root")},
	}
	list = slices.DeleteFunc(list, func(p Place) bool { return p.Path == "" || p.Path == "/" })
	if c.Driver != config.Systemd {
		return list, nil
	}
	for i := range list {
		slice, err := unit.SliceName(list[i].Path)
		if err == nil {
			list[i].Slice = slice
			list[i].Path, err = unit.SlicePath(slice)
		}
		if err != nil {
			return nil, &config.Error{Cause: list[i].Cause, Err: err}
		}
	}
	return list, nil
}

// Make makes the plan. The configuration is the one that config.For gave.
func Make(c *config.Config, f *Facts) (*Plan, error) {
	table, err := allocatable.Compute(f.Capacity, c)
	if err != nil {
		return nil, err
	}
	places, err := Places(c)
	if err != nil {
		return nil, err
	}
	p := &Plan{Config: c, Driver: c.Driver, Facts: f, Resources: table, Places: places}
	for _, place := range places {
		p.place(place)
	}
	p.parent()
	p.processes()
	p.parameters()
	p.scores()
	p.look()
	return p, nil
}

// Place gives the cgroup of a role; false if there is none.
func (p *Plan) Place(role Role) (Place, bool) {
	for _, place := range p.Places {
		if place.Role == role {
			return place, true
		}
	}
	return Place{}, false
}

// Part is the part of the node to which the use of a cgroup counts; "" for none.
func (p *Plan) Part(cgroup string) Role {
	for _, place := range p.Places {
		if cgroup == place.Path || strings.HasPrefix(cgroup, place.Path+"/") {
			return place.Role
		}
	}
	return ""
}

// place plans one cgroup.
func (p *Plan) place(at Place) {
	g, exists := p.Facts.Groups[at.Path]
	if at.Role == System && p.Driver == config.Systemd {
		if !exists {
			p.problem(at.Cause, "there is no cgroup %s: the system container is systemd's, and berth-node does not create it; name one that exists (systemctl list-units --type=slice), or start it: systemctl start %s", at.Path, at.Slice)
			return
		}
		if lacks := slices.DeleteFunc(slices.Clone(g.Missing), func(c string) bool { return c != "cpu" && c != "memory" }); len(lacks) > 0 {
			p.problem(at.Cause, "%s lacks the %s controller, without which %s is neither counted nor enforced: systemctl set-property %s CPUWeight=100 MemoryAccounting=yes",
				at.Path, strings.Join(lacks, " and "), "system-reserved", at.Slice)
			return
		}
	}
	wanted := at.Enforce != config.Nothing || at.Role == Kubelet || at.Role == System && p.Driver == config.Cgroupfs
	if !wanted {
		return
	}
	switch {
	case p.Driver == config.Systemd && at.Role != System:
		now := ""
		if g.Active {
			now = "active"
		}
		p.add(Step{Kind: StartSlice, Target: at.Slice, Group: at.Path, Value: "active", Now: now, Cause: at.Cause})
	case p.Driver == config.Cgroupfs:
		now := ""
		if exists {
			now = "there"
		}
		p.add(Step{Kind: MakeGroup, Target: at.Path, Group: at.Path, Value: "there", Now: now, Cause: at.Cause})
	}
	p.limit(at, g)
}

func (p *Plan) add(s Step) { p.Steps = append(p.Steps, s) }

func (p *Plan) problem(cause, format string, args ...any) {
	p.Problems = append(p.Problems, &config.Error{Cause: cause, Err: fmt.Errorf(format, args...)})
}

func (p *Plan) warn(format string, args ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}

// Changes are the steps that are still to be done.
func (p *Plan) Changes() []Step {
	return slices.DeleteFunc(slices.Clone(p.Steps), func(s Step) bool { return s.Done() || s.CheckOnly })
}

// Levels gives the cgroups of the QoS levels below the workloads; none for a node
// without them. Pods of the guaranteed level have none between them and the workloads'.
func (p *Plan) Levels() []Place {
	top, ok := p.Place(Workloads)
	if !ok || !p.Config.CgroupsPerQoS {
		return nil
	}
	var list []Place
	for _, level := range []string{"burstable", "besteffort"} {
		l := Place{Role: Role(level), Path: path.Join(top.Path, level)}
		if p.Driver == config.Systemd {
			l.Slice = strings.TrimSuffix(top.Slice, ".slice") + "-" + level + ".slice"
			l.Path = path.Join(top.Path, l.Slice)
		}
		list = append(list, l)
	}
	return list
}

// version2 reports whether a controller is on version 2.
func version2(l ledger.Layout, controller string) bool { return slices.Contains(l.Unified, controller) }
