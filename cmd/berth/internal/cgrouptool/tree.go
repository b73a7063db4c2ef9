package cgrouptool

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
)

// Node is one cgroup with those below it: the directories of one path in all
// the hierarchies that have it.
type Node struct {
	Path        string
	Hierarchies []*cgroup.Hierarchy
	Usage       Usage
	Processes   []Process
	Children    []*Node
}

// Process is one that is directly in a cgroup.
type Process struct {
	PID     int
	Command string
}

// Name is the last part of the path, as it is: the unit's or container's own.
func (n *Node) Name() string {
	if n.Path == "/" {
		return "/"
	}
	return n.Path[strings.LastIndexByte(n.Path, '/')+1:]
}

// Looking says what a tree shows.
type Looking struct {
	Depth         int  // of cgroups below the first; -1 is all
	Processes     bool // also the processes
	KernelThreads bool // those of the kernel too
	// Parts are what of the usage is read; 0 is what is Drawn.
	Parts cgroup.Part
}

const (
	// Drawn is what a drawn tree has columns for.
	Drawn = cgroup.CPU | cgroup.Memory | cgroup.Pids
	// Ranked is what a ranking is ordered by.
	Ranked = Drawn | cgroup.IO
	// All is everything in Usage.
	All = Ranked | cgroup.Pressures
)

// Tree reads a cgroup and those below it, with what they use.
func (t *Tools) Tree(target Target, how Looking) (*Node, error) {
	g, err := t.Open(target)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	top, err := t.merge(g.Path(), t.in(g), how.Depth)
	if err != nil {
		return nil, err
	}
	how.Parts = cmp.Or(how.Parts, Drawn)
	top.visit(func(n *Node) { t.fill(n, how) })
	if how.Processes {
		top.keepDeepest(map[int]bool{})
	}
	return top, nil
}

// merge walks all hierarchies at once: one path is one node, wherever it is.
func (t *Tools) merge(path string, homes []*cgroup.Hierarchy, depth int) (*Node, error) {
	n := &Node{Path: path, Hierarchies: homes}
	if depth == 0 {
		return n, nil
	}
	in := map[string][]*cgroup.Hierarchy{}
	var names []string
	for _, h := range homes {
		list, err := t.children(t.dir(h, path))
		if err != nil {
			return nil, err
		}
		for _, name := range list {
			if in[name] == nil {
				names = append(names, name)
			}
			in[name] = append(in[name], h)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		child, err := t.merge(below(path, name), in[name], depth-1)
		if err != nil {
			return nil, err
		}
		n.Children = append(n.Children, child)
	}
	return n, nil
}

// visit calls f for the node and those below it, from the top.
func (n *Node) visit(f func(*Node)) {
	f(n)
	for _, child := range n.Children {
		child.visit(f)
	}
}

// fill reads what the node uses. It may be gone meanwhile.
func (t *Tools) fill(n *Node, how Looking) {
	n.Usage = t.usageAt(n.Path, n.Hierarchies, how.Parts)
	if !how.Processes {
		return
	}
	seen := map[int]bool{}
	for _, h := range n.Hierarchies {
		for _, pid := range t.pids(h, n.Path) {
			if !seen[pid] {
				seen[pid] = true
				n.Processes = append(n.Processes, Process{PID: pid})
			}
		}
	}
	slices.SortFunc(n.Processes, func(a, b Process) int { return a.PID - b.PID })
	kept := n.Processes[:0]
	for _, p := range n.Processes {
		var kernel bool
		if p.Command, kernel = t.command(p.PID); !kernel || how.KernelThreads {
			kept = append(kept, p)
		}
	}
	n.Processes = kept
}

// pids lists the processes directly in a directory. A threaded group of
// version 2 does not tell them (EOPNOTSUPP); the root of its subtree does.
func (t *Tools) pids(h *cgroup.Hierarchy, path string) []int {
	var pids []int
	for _, word := range t.words(h, path, "cgroup.procs") {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// command is the command line of a process, or its name in brackets where it
// has none: then it is the kernel's, or ending.
func (t *Tools) command(pid int) (text string, kernel bool) {
	dir := t.root + "/proc/" + strconv.Itoa(pid)
	if text, err := os.ReadFile(dir + "/cmdline"); err == nil && len(text) > 0 {
		return strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " ")), false
	}
	name, err := os.ReadFile(dir + "/comm")
	if err != nil {
		return "?", false
	}
	return "[" + strings.TrimSpace(string(name)) + "]", true
}

// keepDeepest shows each process once: in one hierarchy it may be in a cgroup
// of its own, and in the root of the others. The deeper place says more.
func (n *Node) keepDeepest(seen map[int]bool) {
	for _, child := range n.Children {
		child.keepDeepest(seen)
	}
	n.Processes = slices.DeleteFunc(n.Processes, func(p Process) bool { return seen[p.PID] })
	for _, p := range n.Processes {
		seen[p.PID] = true
	}
}
