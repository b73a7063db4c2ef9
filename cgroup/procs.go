package cgroup

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Procs lists the processes directly in the group.
func (g *Group) Procs() ([]int, error) { return g.procs(false) }

// AllProcs lists the processes in the group and in all groups below it.
func (g *Group) AllProcs() ([]int, error) { return g.procs(true) }

// procs asks version 2, and where that knows none the version 1 directories
// one by one: another tool may have placed processes in some of them only.
func (g *Group) procs(deep bool) ([]int, error) {
	var failed error
	there := false
	for _, n := range g.byPreference() {
		pids, err := g.procsOf(n, deep)
		switch {
		case gone(err):
			continue
		case err != nil:
			if failed == nil {
				failed = err
			}
			continue
		case len(pids) > 0:
			return pids, nil
		}
		there = true
	}
	if there {
		return nil, nil
	}
	if failed == nil {
		failed = &Error{Op: "read", Path: g.path, Err: os.ErrNotExist}
	}
	return nil, failed
}

// byPreference lists the nodes with version 2 in front, and those where the
// group is the root of its hierarchy last (OfProcess gives such).
func (g *Group) byPreference() []*node {
	list := make([]*node, 0, len(g.nodes))
	for _, root := range []bool{false, true} {
		for _, v2 := range []bool{true, false} {
			for i := range g.nodes {
				if n := &g.nodes[i]; (n.Version == 2) == v2 && (n.path == "/") == root {
					list = append(list, n)
				}
			}
		}
	}
	return list
}

// own lists the nodes that are not the root of their hierarchy. A caller that signals
// a group never means all processes of the host.
func (g *Group) own(op string) ([]*node, error) {
	list := slices.DeleteFunc(g.byPreference(), func(n *node) bool { return n.path == "/" })
	if len(list) == 0 {
		return nil, &NotOwnerError{Op: op, Path: g.path, Owner: Owner{Ownership: Kernel}}
	}
	return list, nil
}

func (g *Group) procsOf(n *node, deep bool) ([]int, error) {
	dir, err := g.open(n)
	if err != nil {
		return nil, &Error{Op: "open", Path: n.full(""), Err: err}
	}
	pids, err := pidsIn(dir, "cgroup.procs", nil)
	if err == unix.EOPNOTSUPP {
		// A threaded group's processes are listed at the root of its subtree;
		// what is here are threads.
		pids, err = pidsIn(dir, "cgroup.threads", nil)
	}
	if err == nil && deep {
		err = walk(dir, func(dir int) error {
			var err error
			pids, err = pidsIn(dir, "cgroup.procs", pids)
			if err == unix.EOPNOTSUPP {
				err = nil // its processes are in the list of the subtree's root
			}
			return err
		})
	}
	if err != nil {
		return nil, &Error{Op: "read", Path: n.full("cgroup.procs"), Err: err}
	}
	return pids, nil
}

// pidsIn appends the numbers of a cgroup.procs, tasks or cgroup.threads file.
func pidsIn(dirfd int, name string, pids []int) ([]int, error) {
	text, err := readWhole(dirfd, name, make([]byte, 4096))
	if err != nil {
		return pids, err
	}
	return parsePids(text, pids)
}

// parsePids reads one number a line. A 0 stands for a process of a pid
// namespace that this one does not see, and cannot be named here.
func parsePids(text []byte, pids []int) ([]int, error) {
	pid, digits := 0, 0
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9' && digits < 10:
			pid = pid*10 + int(c-'0')
			digits++
		case c == '\n':
			if pid > 0 {
				pids = append(pids, pid)
			}
			pid, digits = 0, 0
		default:
			return pids, fmt.Errorf("%.20q is not a process number", strings.TrimSpace(string(text)))
		}
	}
	if pid > 0 {
		pids = append(pids, pid)
	}
	return pids, nil
}

// Populated reports whether a living process is in the group or below it.
func (g *Group) Populated() (bool, error) {
	if n := g.unified(); n != nil {
		events, err := g.events(n)
		if err == nil && events.populated {
			return true, nil
		}
		if err == nil && len(g.nodes) == 1 {
			return false, nil
		}
		if err != nil && n.path != "/" && !gone(err) {
			return false, err
		}
	}
	pids, err := g.AllProcs()
	return len(pids) > 0, err
}
