package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/node/inventory"
)

// Outside lists the containers that are not below the workloads, so that no limit of theirs holds
// them; none where all of the machine is the workloads'.
func (p *Plan) Outside() []inventory.Container {
	top, ok := p.Place(Workloads)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Facts.Containers), func(c inventory.Container) bool { return c.Within(top.Path) })
}

// Move says what to change about a container that is outside.
func (p *Plan) Move(c *inventory.Container) string {
	top, _ := p.Place(Workloads)
	return c.Move(top.Path, top.Slice)
}

// outside warns of containers outside of the workloads: in one line for those of one maker that
// count to one part, which one setting mends.
func (p *Plan) outside() {
	type kind struct {
		maker inventory.Maker
		part  string
	}
	groups := map[kind][]inventory.Container{}
	for _, c := range p.Outside() {
		k := kind{c.Maker, "not counted as anything that is reserved"}
		switch {
		case strings.HasPrefix(c.Cgroup, "/user.slice/"):
			k.part = "counted as a user's session"
		case p.Part(c.Cgroup) != "":
			k.part = "counted as " + string(p.Part(c.Cgroup)) + "-reserved"
		}
		groups[k] = append(groups[k], c)
	}
	byText := func(a, b kind) int { return strings.Compare(string(a.maker)+a.part, string(b.maker)+b.part) }
	for _, k := range slices.SortedFunc(maps.Keys(groups), byText) {
		list := groups[k]
		names, is := list[0].Cgroup, "is"
		if len(list) > 1 {
			is = "are"
			names += ", " + list[1].Cgroup
		}
		if len(list) > 2 {
			names += fmt.Sprintf(" and %d more of %s", len(list)-2, k.maker)
		}
		p.warn("%s %s outside of the workloads, and %s: %s", names, is, k.part, p.Move(&list[0]))
	}
}
