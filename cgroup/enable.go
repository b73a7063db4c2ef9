package cgroup

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// On version 2 a group has a controller's files when its parent lists the
// controller in cgroup.subtree_control, and the parent may list what it has
// itself. A group that gives domain controllers to its children may hold no
// processes (cgroups(7), "no internal processes"); only the root may.

// enableDown enables controllers in every parent of the node, for a new group.
func (g *Group) enableDown(n *node, o *options) error {
	wanted := o.enable
	if wanted == nil {
		if g.host.Mode() != Unified {
			return nil
		}
		wanted = n.Controllers
	}
	for _, name := range wanted {
		if o.enable != nil && !n.Has(name) {
			return g.missing(n, name)
		}
	}
	return g.enable(n, wanted, o.enable != nil)
}

// enable makes controllers available in the node. The direct parent usually
// has them enabled already, which one look tells; else it goes from the root
// down. Where not all of them are demanded, what cannot be had is left out:
// a limit that needs it will say so.
func (g *Group) enable(n *node, wanted []string, demanded bool) error {
	if n.path == "/" || len(wanted) == 0 {
		return nil
	}
	buf := make([]byte, 512)
	if len(absent(wanted, subtreeControl(n, parentOf(n.path), buf))) == 0 {
		return nil
	}
	for end := 0; end < len(n.path); {
		above := n.path[:end]
		if above == "" {
			above = "/"
		}
		lacking := absent(wanted, subtreeControl(n, above, buf))
		if len(lacking) > 0 && !demanded {
			lacking = slices.DeleteFunc(lacking, func(name string) bool { return !slices.Contains(available(n, above, buf), name) })
		}
		if len(lacking) > 0 {
			if err := g.enableIn(n, above, lacking); err != nil && demanded {
				return err
			}
		}
		next := strings.IndexByte(n.path[end+1:], '/')
		if next < 0 {
			return nil
		}
		end += 1 + next
	}
	return nil
}

// subtreeControl reads what a group gives to its children.
func subtreeControl(n *node, path string, buf []byte) []string {
	return names(n, path, "cgroup.subtree_control", buf)
}

// available reads what a group has itself.
func available(n *node, path string, buf []byte) []string {
	return names(n, path, "cgroup.controllers", buf)
}

func names(n *node, path, file string, buf []byte) []string {
	at := node{Hierarchy: n.Hierarchy, path: path}
	text, err := readRecord(unix.AT_FDCWD, at.full(file), buf)
	if err != nil {
		return nil // the write that follows tells why
	}
	return strings.Fields(string(text))
}

func absent(wanted, have []string) []string {
	var list []string
	for _, name := range wanted {
		if !slices.Contains(have, name) {
			list = append(list, name)
		}
	}
	return list
}

// enableIn lists controllers in the cgroup.subtree_control of one group.
func (g *Group) enableIn(n *node, path string, names []string) error {
	at := node{Hierarchy: n.Hierarchy, path: path}
	if err := g.mayEnableIn(&at); err != nil {
		return err
	}
	file := at.full("cgroup.subtree_control")
	all := "+" + strings.Join(names, " +")
	var err error
	if wouldThread(&at, names) {
		err = unix.EBUSY
	} else {
		err = writeFile(unix.AT_FDCWD, file, all)
	}
	if err == unix.EBUSY && g.supervisor != "" {
		if err := g.vacate(&at, g.supervisor); err != nil {
			return err
		}
		err = writeFile(unix.AT_FDCWD, file, all)
	}
	if err == nil {
		return nil
	}
	if err == unix.EBUSY {
		return &Error{Op: "write", Path: file, Value: all, Err: err, Hint: enableHint(&at, "", err)}
	}
	// One that cannot be had spoils the whole write: take them one by one.
	var failed error
	for _, name := range names {
		if err := writeFile(unix.AT_FDCWD, file, "+"+name); err != nil && failed == nil {
			failed = &Error{Op: "write", Path: file, Value: "+" + name, Err: err, Hint: enableHint(&at, name, err)}
		}
	}
	return failed
}

// wouldThread reports whether enabling these controllers would make the group
// the root of a threaded subtree: the kernel lets cpu, cpuset and pids through
// where there are processes, and all children become "domain invalid" by it,
// where no process can be put.
func wouldThread(at *node, names []string) bool {
	for _, name := range names {
		switch name {
		case "cpu", "cpuset", "pids", "perf_event":
		default:
			return false
		}
	}
	if kind, err := typeOf(at); err != nil || kind != Domain {
		return false
	}
	if at.path == "/" && unix.Access(at.full("cgroup.type"), unix.F_OK) != nil {
		return false // the real root, which is free of the rule
	}
	pids, err := pidsIn(unix.AT_FDCWD, at.full("cgroup.procs"), nil)
	return err == nil && len(pids) > 0
}

// enableHint says what stands in the way of enabling a controller in a group.
func enableHint(at *node, name string, err error) string {
	switch err {
	case unix.EBUSY:
		return "it holds processes" + namedProcesses(at) + ", and a cgroup that gives controllers to its children may not: move them into a child of it"
	case unix.ENOENT:
		return "it does not have " + name + " itself: enable it in its parents, or have it delegated"
	case unix.EOPNOTSUPP:
		if kind, _ := typeOf(at); kind == DomainInvalid {
			return invalidHint
		}
		return "it is threaded, and only cpu, cpuset, perf_event and pids work on threads"
	case unix.EINVAL:
		if name == "cpu" {
			return "real-time processes are running outside of the root, which the cpu controller of this kernel refuses"
		}
	}
	return ""
}

// namedProcesses lists some processes of a group for a message.
func namedProcesses(at *node) string {
	pids, err := pidsIn(unix.AT_FDCWD, at.full("cgroup.procs"), nil)
	if err != nil {
		return ""
	}
	return listed(pids)
}

// missing explains why the node does not have a controller.
func (g *Group) missing(n *node, controller string) error {
	e := &Error{Op: "enable " + controller + " for", Path: n.full(""), Err: ErrNoController}
	switch home := g.host.Controller(controller); {
	case home != nil && home.Version == 1:
		e.Hint = "it is on version 1 here, at " + home.Mountpoint
	case home == nil:
		e.Hint = "this kernel has it not, or keeps it from this place: see " + n.dir + "/cgroup.controllers"
	default:
		if kind, _ := typeOf(n); kind == DomainInvalid {
			e.Hint = invalidHint
		} else if kind == Threaded {
			e.Hint = "the cgroup is threaded, and has only cpu, cpuset, perf_event and pids"
		}
	}
	return e
}
