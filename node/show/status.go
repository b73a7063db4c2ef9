package show

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/node/agree"
	"github.com/berth-runtime/berth/node/config/resource"
	"github.com/berth-runtime/berth/node/machine/usage"
	"github.com/berth-runtime/berth/node/plan"
)

// Node is a node at a moment.
type Node struct {
	Plan *plan.Plan
	// Before and Now are two looks, Seconds apart, for what is used of the processors.
	Before, Now *usage.Report
	Seconds     float64
	// Applied is how many settings are on record.
	Applied int
	// Agreement is how other programs of the node are configured, beside the plan.
	Agreement *agree.Report
}

// Share is one part of a node.
type Share struct {
	Name     string                  `json:"name"`
	Cgroup   string                  `json:"cgroup,omitempty"`
	Enforce  string                  `json:"enforce,omitempty"`
	Reserved map[resource.Name]int64 `json:"reserved"`
	Used     map[resource.Name]int64 `json:"used"`
}

// used gives what a part uses, with the processors in thousandths.
func (n *Node) used(now, before usage.Use) map[resource.Name]int64 {
	u := map[resource.Name]int64{resource.Memory: now.Memory, resource.PIDs: now.PIDs}
	if n.Seconds > 0 && now.CPU >= before.CPU {
		u[resource.CPU] = int64(float64(now.CPU-before.CPU) / n.Seconds / 1e6)
	}
	return u
}

// Shares are the parts: system, kube and workloads, where they are there.
func (n *Node) Shares() []Share {
	var list []Share
	for _, at := range n.Plan.Places {
		s := Share{Name: string(at.Role), Cgroup: at.Path, Enforce: string(at.Enforce), Reserved: map[resource.Name]int64{},
			Used: n.used(n.Now.Parts[at.Role], n.Before.Parts[at.Role])}
		for _, r := range n.Plan.Resources {
			switch at.Role {
			case plan.System:
				s.Reserved[r.Name] = r.System
			case plan.Kube:
				s.Reserved[r.Name] = r.Kube
			case plan.Workloads:
				s.Reserved[r.Name] = r.Allocatable
			}
		}
		if at.Role == plan.Kubelet {
			continue
		}
		list = append(list, s)
	}
	return list
}

// Status draws a node: a table of its parts, bars of each resource, the workloads
// by QoS, and what is odd.
func (s Style) Status(n *Node) string {
	var b strings.Builder
	b.WriteString(s.head(n.Plan))
	fmt.Fprintf(&b, "%d settings of berth-node are in effect, %d still to be applied\n", n.Applied, len(n.Plan.Changes()))
	b.WriteString("\n" + s.parts(n))
	b.WriteString("\n" + s.bars(n))
	b.WriteString("\n" + s.levels(n))
	b.WriteString(s.containers(n.Plan))
	b.WriteString(s.daemons(n.Plan))
	if k := n.Now.Kubelet; k != "" {
		fmt.Fprintf(&b, "\nThe kubelet is in %s, which uses %s of memory\n", k, resource.Memory.Human(n.Now.KubeletUse.Memory))
	}
	if owner := agree.Owner(n.Plan); owner != "" {
		b.WriteString("\n" + owner + "\n")
	}
	b.WriteString(s.agreement(n.Agreement))
	b.WriteString(s.remarks(n.Plan))
	return b.String()
}

// shown are the resources whose use is known.
var shown = []resource.Name{resource.CPU, resource.Memory, resource.PIDs}

func (s Style) parts(n *Node) string {
	rows := [][]string{{"PART", "CGROUP", "ENFORCED", "CPU USED", "OF", "MEMORY USED", "OF", "PIDS USED", "OF"}}
	for _, part := range n.Shares() {
		row := []string{part.Name, part.Cgroup, strings.Replace(strings.Replace(part.Enforce, "true", "yes", 1), "false", "no", 1)}
		for _, r := range shown {
			of := "-"
			if part.Reserved[r] > 0 {
				of = r.Human(part.Reserved[r])
			}
			row = append(row, r.Human(part.Used[r]), of)
		}
		rows = append(rows, row)
	}
	if n.Now.User != nil {
		var before usage.Use
		if n.Before.User != nil {
			before = *n.Before.User
		}
		row := []string{"users", "/user.slice", "no"}
		for _, r := range shown {
			row = append(row, r.Human(n.used(*n.Now.User, before)[r]), "-")
		}
		rows = append(rows, row)
	}
	return s.table(rows, func(i int) bool { return i > 2 }, s.heading)
}

// bars draws for each resource how the capacity is shared out, and below it how
// much is used.
func (s Style) bars(n *Node) string {
	width := 50
	if s.Width > 0 { // beside what stands on both sides
		width = max(10, min(width, s.Width-27))
	}
	var b strings.Builder
	sign := func(i int) (string, string, string) {
		switch i {
		case 0:
			return "▓", "s", cyan
		case 1:
			return "▒", "k", yellow
		}
		return "█", "#", green
	}
	for _, name := range shown {
		r, ok := n.Plan.Resources.Of(name)
		if !ok || r.Capacity == 0 {
			continue
		}
		var reserved, used []part
		share := func(amount int64) float64 { return float64(amount) / float64(r.Capacity) }
		for _, p := range n.Shares() {
			i := map[string]int{"system": 0, "kube": 1, "workloads": 2}[p.Name]
			u, a, c := sign(i)
			used = append(used, part{share(p.Used[name]), u, a, c})
		}
		for i, amount := range []int64{r.System, r.Kube, r.Allocatable} {
			u, a, c := sign(i)
			reserved = append(reserved, part{share(amount), u, a, c})
		}
		fmt.Fprintf(&b, "%-7s shared out %s %s\n", name, s.bar(width, reserved...), name.Human(r.Capacity))
		fmt.Fprintf(&b, "%-7s used       %s\n", "", s.bar(width, used...))
	}
	var line strings.Builder
	used := 5
	line.WriteString("     ")
	for _, sign := range []struct{ sign, ascii, color, means string }{
		{"▓", "s", cyan, "system"}, {"▒", "k", yellow, "kube"}, {"█", "#", green, "workloads"}, {"░", ".", faint, "eviction, huge pages, or free"},
	} {
		long := len("   x ") + len(sign.means)
		if s.Width > 0 && used+long > s.Width && used > 5 {
			line.WriteString("\n     ")
			used = 5
		}
		used += long
		line.WriteString("   " + s.paint(sign.color, s.pick(sign.sign, sign.ascii)) + " " + sign.means)
	}
	return b.String() + line.String() + "\n"
}

// daemons lists those that an OOM score is for, with the part that they count to.
func (s Style) daemons(p *plan.Plan) string {
	if len(p.Facts.Daemons) == 0 {
		return ""
	}
	rows := [][]string{{"DAEMON", "CGROUP", "COUNTED AS", "PID", "OOM SCORE", "WANTED"}}
	for _, d := range p.Facts.Daemons {
		part := string(p.Part(d.Cgroup))
		if part == "" {
			part = "-"
		}
		rows = append(rows, []string{d.Name, d.Cgroup, part, strconv.Itoa(d.PID), strconv.Itoa(d.Score), strconv.Itoa(p.Config.Scores[d.Key].Value)})
	}
	return "\n" + s.table(rows, func(i int) bool { return i > 2 }, s.heading)
}

func (s Style) levels(n *Node) string {
	rows := [][]string{{"WORKLOADS", "PODS", "CONTAINERS", "CPU USED", "MEMORY USED", "PIDS"}}
	list := n.Now.Levels
	if len(list) > 1 {
		list = append(list[:len(list):len(list)], n.Now.Workloads())
		list[len(list)-1].Name = "all"
	}
	for _, l := range list {
		var before usage.Use
		for _, old := range append(n.Before.Levels, n.Before.Workloads()) {
			if old.Name == l.Name || l.Name == "all" && old.Name == "workloads" {
				before = old.Use
			}
		}
		pods := strconv.Itoa(l.Pods)
		if !n.Plan.Config.CgroupsPerQoS {
			pods = "-"
		}
		u := n.used(l.Use, before)
		rows = append(rows, []string{l.Name, pods, strconv.Itoa(l.Containers), resource.CPU.Human(u[resource.CPU]),
			resource.Memory.Human(u[resource.Memory]), resource.PIDs.Human(u[resource.PIDs])})
	}
	return s.table(rows, func(i int) bool { return i > 0 }, s.heading)
}
