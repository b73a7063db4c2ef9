package usage

import (
	"path"
	"strings"

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

// subtract leaves nothing below 0: the files are read one after the other.
func (u *Use) subtract(o Use) {
	u.CPU -= min(u.CPU, o.CPU)
	u.Memory = max(u.Memory-o.Memory, 0)
	u.PIDs = max(u.PIDs-o.PIDs, 0)
}

// Level is the workloads of a QoS level, or all of a node without levels.
type Level struct {
	Name       string `json:"name"`
	Pods       int    `json:"pods"`
	Containers int    `json:"containers"`
	// Use is that of the level's cgroup, which its limit is compared with: containers that have
	// ended may have left memory there, such as files in a pod's tmpfs.
	Use Use `json:"use"`
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
func Measure(m *machine.Machine, p *plan.Plan) *Report { return measure(m, p, true) }

// Processors is Measure without a look for containers: the first of two looks, for the time on
// processors in between.
func Processors(m *machine.Machine, p *plan.Plan) *Report { return measure(m, p, false) }

func measure(m *machine.Machine, p *plan.Plan, all bool) *Report {
	s := newSource(m)
	r := &Report{Parts: map[plan.Role]Use{}}
	for _, place := range p.Places {
		if u, ok := s.group(place.Path); ok {
			r.Parts[place.Role] = u
		}
	}
	if p.Driver == config.Systemd {
		if u, ok := s.group("/user.slice"); ok {
			r.User = &u
		}
	}
	if k := p.Facts.Kubelet; k != nil {
		r.Kubelet = k.Cgroup
		if u, ok := s.group(k.Cgroup); ok {
			r.KubeletUse = &u
		}
	}
	if at, ok := p.Place(plan.Workloads); ok {
		r.Levels = levels(s, p, at, all)
	}
	return r
}

// Of measures one cgroup; false if it is not there.
func Of(m *machine.Machine, at string) (Use, bool) { return newSource(m).group(at) }

// walker counts the containers below a cgroup.
type walker struct {
	*source
	systemd bool
	sum     bool // what they use is added up, since the cgroup above is the whole machine's
}

func levels(s *source, p *plan.Plan, top plan.Place, all bool) []Level {
	w := walker{s, p.Driver == config.Systemd, top.Path == "/"}
	lower := p.Levels()
	if len(lower) == 0 {
		level := w.level("workloads", top.Path)
		if all {
			leave := w.enter(top.Path)
			w.below(top.Path, 1, &level)
			leave()
		}
		return []Level{level}
	}
	guaranteed := w.level("guaranteed", top.Path)
	list := []Level{}
	skip := map[string]bool{}
	for _, l := range lower {
		skip[path.Base(l.Path)] = true
		level := w.level(string(l.Role), l.Path)
		guaranteed.Use.subtract(level.Use)
		if all {
			w.pods(l.Path, nil, &level)
		}
		list = append(list, level)
	}
	if all {
		w.pods(top.Path, skip, &guaranteed)
	}
	return append([]Level{guaranteed}, list...)
}

// level is one without its containers.
func (w walker) level(name, at string) Level {
	if w.sum {
		return Level{Name: name, Use: Use{CPU: w.processors(at)}}
	}
	use, _ := w.group(at)
	return Level{Name: name, Use: use}
}

// pods takes each cgroup below a QoS level for a pod, if something runs in it.
func (w walker) pods(at string, skip map[string]bool, level *Level) {
	names := w.children(at)
	defer w.enter(at)()
	for _, name := range names {
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
		if tasks, runs := w.runs(p); runs {
			level.Containers++
			if w.sum {
				level.Use.add(Use{Memory: w.workingSet(p), PIDs: tasks})
			}
		}
	}
}
