package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
	"github.com/berth-runtime/berth/internal/settings"
	"github.com/berth-runtime/berth/node/inventory"
)

// containers counts those that run, whatever made them. Where the host has a place for them
// (cgroup-parent), which berth-node limits, it finds those that are elsewhere.
func containers(m *Machine) []Finding {
	h, err := cgroup.DetectIn(m.Root)
	if err != nil || h.Mode() == cgroup.None || m.UID != 0 {
		return nil
	}
	f := Finding{Check: "containers", For: Root, Found: "none runs"}
	list, err := inventory.Find(m.Root, h)
	if err != nil {
		f.State, f.Found = Note, err.Error()
		return []Finding{f}
	}
	counts := map[inventory.Maker]int{}
	for _, c := range list {
		counts[c.Maker]++
	}
	var words []string
	for maker, n := range counts {
		words = append(words, fmt.Sprintf("%s %d", maker, n))
	}
	if len(words) > 0 {
		slices.Sort(words)
		f.Found = strings.Join(words, ", ")
	}
	var s settings.Settings
	text, err := settings.ReadFile(m.path(settings.File))
	if err == nil {
		s, err = settings.Parse(settings.File, text)
	}
	if err != nil {
		return []Finding{f, {Check: "settings", For: Root, State: Gap, Found: err.Error(), Without: "berth and its shim start no container"}}
	}
	if s.Parent == "" {
		return []Finding{f}
	}
	slice, parent := "", s.Parent
	if m.hasSystemd() && s.Driver != settings.Cgroupfs {
		if slice, err = unit.SliceName(s.Parent); err == nil {
			parent, err = unit.SlicePath(slice)
		}
		if err != nil {
			return []Finding{f, {Check: "settings", For: Root, State: Gap, Found: settings.File + ": cgroup-parent: " + err.Error(), Without: "berth and its shim start no container"}}
		}
	}
	findings := []Finding{f}
	said := map[string]int{} // by what to do: one setting moves all that a maker makes
	for i := range list {
		c := &list[i]
		if c.Within(parent) {
			continue
		}
		do := string(c.Maker) + ": " + c.Move(s.Parent, slice)
		if at, ok := said[do]; ok {
			findings[at].Found += ", " + c.Cgroup
			continue
		}
		said[do] = len(findings)
		findings = append(findings, Finding{Check: "place of containers", For: Root, State: Note, Found: "outside of " + parent + ": " + c.Cgroup,
			Without: "what berth-node reserves and limits does not hold for them", Fix: []Fix{{Run: do}}})
	}
	return findings
}
