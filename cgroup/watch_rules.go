package cgroup

import (
	"strings"
	"time"
)

// source is one file of a group that events come from.
type source struct {
	entry   *watched
	node    *node
	path    string
	name    string // of the directory in its parent, for byRemoval
	trigger trigger
	rules   []rule
	last    []uint64 // the value of each rule's key
	detail  string

	watch int32 // of inotify
	fd    int   // in epoll, by the other triggers
	again int   // how often it was looked at since the last OOM
	when  time.Time
}

// trigger is how the kernel says that there is something to read.
type trigger int

const (
	byChange  trigger = iota // inotify: the kernel marks its files as modified
	byRemoval                // inotify on the parent directory
	byEventfd                // version 1's cgroup.event_control
	byExit                   // the end of one process
)

// rule makes events of a key in the file: of each growth of a count, or of a
// switch that goes up or down.
type rule struct {
	key   string
	count Kind
	up    Kind
	down  Kind
}

func (s *source) kinds() Kind {
	var k Kind
	for _, r := range s.rules {
		k |= r.count | r.up | r.down
	}
	switch s.trigger {
	case byEventfd:
		k |= OOM
	case byRemoval:
		k |= Removed
	case byExit:
		k |= Empty
	}
	return k
}

// sources lists the files that tell of the kinds, where the group has them.
func (g *Group) sources(kinds Kind) []*source {
	var list []*source
	add := func(n *node, file string, trigger trigger, detail string, rules ...rule) {
		if n == nil {
			return
		}
		s := &source{node: n, path: n.full(n.file(file)), trigger: trigger, rules: rules, detail: detail, fd: -1, watch: -1}
		if s.kinds()&kinds != 0 {
			s.last = make([]uint64, len(rules))
			list = append(list, s)
		}
	}
	u, memory := g.unified(), g.node("memory")
	if u != nil && u.path != "/" {
		add(u, "cgroup.events", byChange, "",
			rule{key: "populated", up: Populated, down: Empty}, rule{key: "frozen", up: Frozen, down: Thawed})
	}
	if memory != nil && memory.Version == 2 {
		add(memory, "memory.events", byChange, "",
			rule{key: "low", count: MemoryLow}, rule{key: "high", count: MemoryHigh}, rule{key: "max", count: MemoryMax},
			rule{key: "oom", count: OOM}, rule{key: "oom_kill", count: OOMKill}, rule{key: "oom_group_kill", count: OOMGroupKill})
		add(memory, "memory.swap.events", byChange, "", rule{key: "max", count: SwapMax}, rule{key: "fail", count: SwapFail})
	} else {
		add(memory, "memory.oom_control", byEventfd, "", rule{key: "oom_kill", count: OOMKill})
	}
	pids := g.node("pids")
	add(pids, "pids.events", byChange, "", rule{key: "max", count: PidsMax})
	if hugetlb := g.node("hugetlb"); hugetlb != nil && hugetlb.Version == 2 && kinds&HugetlbMax != 0 {
		for _, size := range g.host.hugePageSizes() {
			add(hugetlb, "hugetlb."+size+".events", byChange, size, rule{key: "max", count: HugetlbMax})
		}
	}
	if u == nil && len(g.nodes) > 0 {
		add(&g.nodes[0], "cgroup.procs", byExit, "")
	}
	if len(g.nodes) > 0 {
		if home := g.byPreference()[0]; home.path != "/" {
			// The kernel tells the parent of a removal (IN_DELETE); the directory
			// and its files get no word of it before Linux 7.0.
			parent := node{Hierarchy: home.Hierarchy, path: parentOf(home.path)}
			list = append(list, &source{
				node: home, path: parent.full(""), name: home.path[strings.LastIndexByte(home.path, '/')+1:],
				trigger: byRemoval, fd: -1, watch: -1,
			})
		}
	}
	return list
}
