package usage

import (
	"path"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/machine"
	"github.com/berth-runtime/berth/node/plan"
)

// Use is what is used.
type Use struct {
	CPU    uint64 `json:"cpuNanoseconds"` // since the cgroup was made
	Memory int64  `json:"memoryBytes"`    // the working set: without files that the kernel gives up first
	PIDs   int64  `json:"pids"`
}

func (u *Use) add(o Use) {
	u.CPU += o.CPU
	u.Memory += o.Memory
	u.PIDs += o.PIDs
}

// Level is the workloads of a QoS level, or all of a node without levels.
type Level struct {
	Name       string `json:"name"`
	Pods       int    `json:"pods"`
	Containers int    `json:"containers"`
	Use        Use    `json:"use"` // the sum over the running containers
}

// Report is a whole node.
type Report struct {
	// Parts are the cgroups of the plan, by role; what is not there is missing.
	Parts map[plan.Role]Use `json:"parts"`
	// User is what the sessions of users use, which count as system-reserved.
	User *Use `json:"user,omitempty"`
	// Levels are the workloads.
	Levels []Level `json:"levels"`
	// Kubelet is the cgroup that the kubelet was found in.
	Kubelet    string `json:"kubelet,omitempty"`
	KubeletUse *Use   `json:"kubeletUse,omitempty"`
}

// Workloads is the sum over all levels.
func (r *Report) Workloads() Level {
	sum := Level{Name: "workloads"}
	for _, l := range r.Levels {
		sum.Pods += l.Pods
		sum.Containers += l.Containers
		sum.Use.add(l.Use)
	}
	return sum
}

// Measure looks at all parts of a plan.
func Measure(m *machine.Machine, p *plan.Plan) *Report {
	r := &Report{Parts: map[plan.Role]Use{}}
	for _, place := range p.Places {
		if u, ok := Of(m, place.Path); ok {
			r.Parts[place.Role] = u
		}
	}
	if p.Driver == config.Systemd {
		if u, ok := Of(m, "/user.slice"); ok {
			r.User = &u
		}
	}
	if k := p.Facts.Kubelet; k != nil {
		r.Kubelet = k.Cgroup
		if u, ok := Of(m, k.Cgroup); ok {
			r.KubeletUse = &u
		}
	}
	if at, ok := p.Place(plan.Workloads); ok {
		r.Levels = levels(m, p, at)
	}
	return r
}

// walker finds the containers below a cgroup.
type walker struct {
	m       *machine.Machine
	systemd bool
	only    cgroup.Option
}

func levels(m *machine.Machine, p *plan.Plan, top plan.Place) []Level {
	w := walker{m, p.Driver == config.Systemd, counted(m)}
	lower := p.Levels()
	if len(lower) == 0 {
		all := Level{Name: "workloads"}
		w.below(top.Path, 1, &all)
		return []Level{all}
	}
	guaranteed := Level{Name: "guaranteed"}
	list := []Level{}
	skip := map[string]bool{}
	for _, l := range lower {
		skip[path.Base(l.Path)] = true
		level := Level{Name: string(l.Role)}
		w.pods(l.Path, nil, &level)
		list = append(list, level)
	}
	w.pods(top.Path, skip, &guaranteed)
	return append([]Level{guaranteed}, list...)
}

// pods takes each cgroup below a QoS level for a pod, if something runs in it.
func (w walker) pods(at string, skip map[string]bool, level *Level) {
	for _, name := range w.children(at) {
		if skip[name] {
			continue
		}
		before := level.Containers
		w.below(path.Join(at, name), 1, level)
		if level.Containers > before {
			level.Pods++
		}
	}
}

// below adds the containers below a cgroup. Under systemd slices are only order,
// and what is in them are the units that have processes; without it the cgroups
// directly below are the containers. What a container makes inside of its cgroup
// is its own affair.
func (w walker) below(at string, depth int, level *Level) {
	for _, name := range w.children(at) {
		p := path.Join(at, name)
		if w.systemd && strings.HasSuffix(name, ".slice") && depth < 16 {
			w.below(p, depth+1, level)
			continue
		}
		g, err := w.m.Cgroups.Open(p, w.only)
		if err != nil {
			continue
		}
		if populated, err := g.Populated(); err == nil && populated {
			level.Containers++
			level.Use.add(read(g))
		}
		g.Close()
	}
}

func (w walker) children(at string) []string {
	g, err := w.m.Cgroups.Open(at, w.only)
	if err != nil {
		return nil
	}
	defer g.Close()
	names, err := g.Children()
	if err != nil {
		return nil
	}
	return names
}

// Of measures one cgroup; false if it is not there.
func Of(m *machine.Machine, at string) (Use, bool) {
	g, err := m.Cgroups.Open(at, counted(m))
	if err != nil {
		return Use{}, false
	}
	defer g.Close()
	return read(g), true
}

// read takes the few files that are needed: there may be hundreds of containers,
// and all that Group.Stats reads would be felt.
func read(g *cgroup.Group) Use {
	u := Use{Memory: number(g, "memory.current", "memory.usage_in_bytes"), PIDs: number(g, "pids.current")}
	if n := number(g, "cpuacct.usage"); n > 0 {
		u.CPU = uint64(n)
	} else {
		u.CPU = uint64(keyed(g, "cpu.stat", "usage_usec")) * 1000
	}
	// On version 1 the total is that of the cgroups below, too.
	u.Memory = max(u.Memory-keyed(g, "memory.stat", "total_inactive_file", "inactive_file"), 0)
	return u
}

func number(g *cgroup.Group, files ...string) int64 {
	for _, file := range files {
		text, err := g.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	}
	return 0
}

// keyed reads one value of a file of "key value" lines: that of the first key which
// is there.
func keyed(g *cgroup.Group, file string, keys ...string) int64 {
	text, err := g.ReadFile(file)
	if err != nil {
		return 0
	}
	values := make([]int64, len(keys))
	best := len(keys)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, " ")
		for i, key := range keys[:best] {
			if name == key {
				values[i], _ = strconv.ParseInt(strings.TrimSpace(value), 10, 64)
				best = i
			}
		}
	}
	if best == len(keys) {
		return 0
	}
	return values[best]
}

// counted names the hierarchies that have what is read: there may be a dozen, and
// each that is opened costs for each container.
func counted(m *machine.Machine) cgroup.Option {
	var names []string
	for _, c := range []string{"memory", "pids", "cpuacct", "cpu"} {
		if m.Cgroups.Controller(c) != nil {
			names = append(names, c)
		}
	}
	if m.Cgroups.Unified() != nil {
		names = append(names, "unified")
	}
	return cgroup.Only(names...)
}
