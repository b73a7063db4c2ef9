package show

import (
	"fmt"
	"strings"

	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/node/agree"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/config/allocatable"
	"github.com/berth-runtime/berth/node/plan"
)

// Plan draws a plan: the sums, the hierarchy, what would change and what is odd.
func (s Style) Plan(p *plan.Plan) string {
	var b strings.Builder
	b.WriteString(s.head(p))
	b.WriteString("\n" + s.paint(bold, "Resources") + "\n" + s.resources(p.Resources))
	b.WriteString("\n" + s.paint(bold, "Hierarchy") + "\n" + s.Tree(p))
	b.WriteString("\n" + s.paint(bold, "Changes") + "\n" + s.steps(p))
	b.WriteString(s.remarks(p))
	return b.String()
}

func (s Style) head(p *plan.Plan) string {
	init := "no systemd"
	if p.Facts.SystemdVersion > 0 {
		init = fmt.Sprintf("systemd %d", p.Facts.SystemdVersion)
	}
	return fmt.Sprintf("This node: %s, cgroups %s, driver %s\n", init, p.Facts.Mode, p.Driver)
}

func (s Style) resources(t allocatable.Table) string {
	rows := [][]string{{"RESOURCE", "CAPACITY", "SYSTEM", "KUBE", "EVICTION", "HUGE PAGES", "ALLOCATABLE", "LIMIT OF WORKLOADS"}}
	none := func(n int64, text string) string {
		if n == 0 {
			return "-"
		}
		return text
	}
	for _, r := range t {
		f := r.Name.Human
		rows = append(rows, []string{string(r.Name), f(r.Capacity), none(r.System, f(r.System)), none(r.Kube, f(r.Kube)),
			none(r.Eviction, f(r.Eviction)), none(r.HugePages, f(r.HugePages)), f(r.Allocatable), f(r.Limit)})
	}
	return s.table(rows, func(i int) bool { return i > 0 }, s.heading)
}

func (s Style) heading(row, column int, text string) string {
	if row == 0 {
		return s.paint(faint, text)
	}
	if column == 0 {
		return s.paint(bold, text)
	}
	return text
}

// Tree draws the hierarchy that a plan results in.
func (s Style) Tree(p *plan.Plan) string {
	type node struct{ name, text string }
	var list []node
	for _, at := range p.Places {
		name := at.Path[1:]
		if at.Slice != "" {
			name = at.Slice
		}
		list = append(list, node{name, s.placeText(p, at)})
	}
	if p.Driver == config.Systemd {
		last := list[len(list)-1:]
		list = append(list[:len(list)-1:len(list)-1], node{"user.slice", "sessions of users; counted as system-reserved, not limited"})
		list = append(list, last...)
	}
	rows := [][]string{{"/", p.Facts.Mode + " cgroups"}}
	lower := p.Levels()
	for i, n := range list {
		branch, under := s.pick("├─ ", "|- "), s.pick("│  ", "|  ")
		if i == len(list)-1 {
			branch, under = s.pick("└─ ", "`- "), "   "
		}
		rows = append(rows, []string{branch + n.name, n.text})
		if i < len(list)-1 || len(lower) == 0 {
			continue
		}
		rows = append(rows, []string{under + s.pick("├─ ", "|- ") + "(pods)", "guaranteed"})
		for j, l := range lower {
			name := l.Slice
			if name == "" {
				name = string(l.Role)
			}
			piece := s.pick("├─ ", "|- ")
			if j == len(lower)-1 {
				piece = s.pick("└─ ", "`- ")
			}
			rows = append(rows, []string{under + piece + name, string(l.Role) + "; its limits are the kubelet's"})
		}
	}
	return s.table(rows, func(int) bool { return false }, func(_, column int, text string) string {
		if column == 0 {
			return s.paint(bold, text)
		}
		return text
	})
}

// placeText says what a cgroup is for, and what of that is a limit.
func (s Style) placeText(p *plan.Plan, at plan.Place) string {
	var what string
	var amount func(allocatable.Row) int64
	switch at.Role {
	case plan.System:
		what, amount = "system-reserved", func(r allocatable.Row) int64 { return r.System }
	case plan.Kube:
		what, amount = "kube-reserved", func(r allocatable.Row) int64 { return r.Kube }
	case plan.Kubelet:
		return "the kubelet, moved there"
	case plan.Workloads:
		what, amount = "workloads", func(r allocatable.Row) int64 { return r.Limit }
	}
	text := ""
	for _, r := range p.Resources {
		if n := amount(r); n > 0 {
			text += ", " + string(r.Name) + " " + r.Name.Human(n)
		}
	}
	if text != "" {
		text = ": " + text[2:]
	}
	switch at.Enforce {
	case config.All:
		text += "; enforced"
	case config.CPUOnly:
		text += "; cpu enforced"
	default:
		text += "; not enforced"
	}
	return what + text
}

// steps lists what would change, and says so where nothing would.
func (s Style) steps(p *plan.Plan) string {
	changes := p.Changes()
	if len(changes) == 0 {
		held := 0
		for _, step := range p.Steps {
			if !step.CheckOnly {
				held++
			}
		}
		return fmt.Sprintf("none: all %d settings are in effect\n", held)
	}
	var rows [][]string
	for _, c := range changes {
		now, arrow := c.Now, s.pick("→", "->")
		if c.Kind == plan.SetProperty && c.Now == c.Value {
			now = c.FileNow + " in " + c.Write.File
		}
		sign := "~"
		what := c.Target + " " + c.Name
		switch {
		case c.Kind == plan.StartSlice || c.Kind == plan.MakeGroup:
			sign, what = "+", c.Target
			now, arrow = "", ""
		case c.Kind == plan.Move:
			what = c.Name
			if now == "" {
				now = c.Process.Cgroup
			}
		case now == "":
			now = "(not there)"
		}
		value := c.Value
		if c.Kind == plan.StartSlice {
			value = "start"
		} else if c.Kind == plan.MakeGroup {
			value = "make"
		}
		rows = append(rows, []string{sign, what, now, arrow, value, c.Cause})
	}
	return s.table(rows, func(i int) bool { return i == 2 }, func(_, column int, text string) string {
		switch column {
		case 0, 4:
			return s.paint(green, text)
		case 2, 5:
			return s.paint(faint, text)
		}
		return text
	})
}

// remarks are the warnings and the problems.
func (s Style) remarks(p *plan.Plan) string {
	var b strings.Builder
	if len(p.Warnings) > 0 {
		b.WriteString("\n" + s.paint(yellow, "Warnings") + "\n")
		for _, w := range p.Warnings {
			b.WriteString("  ! " + escape.Message(w) + "\n")
		}
	}
	if len(p.Problems) > 0 {
		b.WriteString("\n" + s.paint(red, "Problems that prevent it from being applied") + "\n")
		for _, err := range p.Problems {
			b.WriteString("  " + s.pick("✗", "x") + " " + err.Error() + "\n")
		}
	}
	return b.String()
}

// agreement are the programs that differ from the plan, and what to change.
func (s Style) agreement(r *agree.Report) string {
	if r == nil {
		return ""
	}
	text := "\n" + strings.Join(r.Compared, ", ") + " agree on driver, cgroups and reservations\n"
	if len(r.Compared) == 1 {
		text = ""
	}
	if len(r.Differences) > 0 {
		text = "\n" + s.paint(yellow, "Disagreements") + "\n"
	}
	for _, d := range r.Differences {
		text += "  ! " + escape.Message(d.String()) + "\n"
	}
	return text
}
