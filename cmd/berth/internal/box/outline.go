package box

import (
	"os"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/view"
	"github.com/berth-runtime/berth/internal/escape"
)

// Outline tells in about twenty lines what a box would be. What comes of no option is short, and
// the rest ends with the option that says so.
func (o *Options) Outline(f *container.Foreseen, network string) []byte {
	var text []byte
	for _, w := range f.Warnings {
		text = append(append(append(text, "warning: "...), escape.Line(o.Blame(w))...), '\n')
	}
	var sections []view.Section
	for _, s := range view.BriefSections(f) {
		switch s.Title {
		case "Cgroup":
			if os.Geteuid() != 0 && !o.Limited() {
				s.Steps = append(s.Steps, view.Step{What: "go without one if that is refused"})
			}
		case "Root":
			s.Steps = slices.DeleteFunc(s.Steps, func(step view.Step) bool { return step.Pointer == "/linux/rootfsPropagation" })
		case "Mounts":
			sections = append(sections, view.Section{Title: "Network", Steps: []view.Step{{What: network, Pointer: "--net"}}})
			s.Steps = o.mountsOf(f.Plan, s.Steps)
		case "Paths":
			s.Steps = o.pathsOf(f.Plan)
		case "Names":
			s.Steps = slices.DeleteFunc(s.Steps, func(step view.Step) bool { return step.Pointer == "" })
		case "Program":
			continue
		}
		for i := range s.Steps {
			s.Steps[i].Pointer = o.option(s.Steps[i].Pointer)
		}
		sections = append(sections, s)
	}
	if o.Timeout > 0 {
		sections = append(sections, view.Section{Title: "Time", Steps: []view.Step{{What: "kill it after " + o.Timeout.String(), Pointer: "--timeout"}}})
	}
	return append(text, view.Columns(sections)...)
}

// mountsOf has the places that are new in every box in one line.
func (o *Options) mountsOf(p *plan.Plan, steps []view.Step) (kept []view.Step) {
	var usual []string
	for i, s := range steps {
		m := &p.Mounts[i]
		if s.Pointer = o.mountOption(m.Destination); s.Pointer == "" && !m.Bind {
			usual = append(usual, m.Destination)
			continue
		}
		kept = append(kept, s)
	}
	return append([]view.Step{{What: "new " + view.List(usual)}}, kept...)
}

// mountOption is the option that a mount came by, "" for none.
func (o *Options) mountOption(place string) string {
	for _, b := range o.Binds {
		if b.Path == place {
			return b.Option
		}
	}
	switch {
	case slices.ContainsFunc(o.Devices, func(d Device) bool { return d.Path == place }):
		return "--device"
	case slices.Contains(o.Tmp, place):
		return "--tmp"
	}
	return ""
}

// pathsOf has the secrets on a line of their own.
func (o *Options) pathsOf(p *plan.Plan) []view.Step {
	masked := slices.DeleteFunc(slices.Clone(p.Masked), func(m plan.Path) bool { return slices.Contains(o.Hidden, m.Path) })
	steps := view.PathSteps(masked, p.Readonly)
	if secrets := inHome(o.Hidden); len(secrets) > 0 {
		steps = append([]view.Step{{What: "hide the secrets " + strings.Join(secrets, ", "), Pointer: "--show"}}, steps...)
	}
	return steps
}

// option is the one that an entry of the configuration came by, or could come by.
func (o *Options) option(pointer string) string {
	if strings.HasPrefix(pointer, "--") {
		return pointer
	}
	for _, entry := range blamed {
		if pointer != "" && within(pointer, entry[0]) && strings.HasPrefix(entry[1], "--") {
			return o.Blame(entry[0])
		}
	}
	return ""
}
