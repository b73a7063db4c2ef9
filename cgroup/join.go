package cgroup

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Join moves a process, with all its threads, into the group; pid 0 is this
// process. Where one hierarchy refuses it, it is moved back in the others. The
// kernel waits for an RCU grace period there, up to 20 ms: to start a process in a
// group, use Start.
func (g *Group) Join(pid int) error { return Join(pid, g) }

// Join moves a process into several groups of one host, as the method does into
// one, or into none of them: where one refuses it, it is moved back in the others.
func Join(pid int, groups ...*Group) error {
	for _, g := range groups {
		if err := g.ready(); err != nil {
			return err
		}
		for i := range g.nodes {
			if err := g.mayJoin(&g.nodes[i]); err != nil {
				return err
			}
		}
	}
	if len(groups) == 0 {
		return nil
	}
	// A process that is not to be seen in /proc may still be moved; only the way
	// back is not known then.
	was, unknown := groups[0].host.memberships(pid)
	var moved []*node
	value := strconv.Itoa(pid)
	for _, g := range groups {
		for i := range g.nodes {
			n := &g.nodes[i]
			err := g.write(n, "cgroup.procs", value)
			if err == nil {
				moved = append(moved, n)
				continue
			}
			err = g.explainJoin(n, err)
			if len(moved) == 0 || errors.Is(err, unix.ESRCH) {
				return err
			}
			return takenBack(err, func() error {
				if unknown != nil {
					return unknown
				}
				return moveBack(moved, was, value)
			})
		}
	}
	return nil
}

// moveBack puts a process back to where it was in some hierarchies.
func moveBack(nodes []*node, was []membership, pid string) error {
	var failed []error
	for _, n := range nodes {
		at := slices.IndexFunc(was, func(m membership) bool { return m.in(n.Hierarchy) })
		if at < 0 {
			continue
		}
		path, err := n.within(was[at].path)
		if err == nil {
			old := node{Hierarchy: n.Hierarchy, path: path}
			err = writeFile(unix.AT_FDCWD, old.full("cgroup.procs"), pid)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			failed = append(failed, &Error{Op: "move back", Path: n.dir + was[at].path, Value: pid, Err: err})
		}
	}
	return errors.Join(failed...)
}

// ready refuses groups that no process should be put into now: frozen ones. A
// process that enters a frozen version 1 group cannot even be killed, and on
// version 2 it would stop before it has done anything (see IntoFrozen).
func (g *Group) ready() error {
	n, err := g.frozenNode()
	if err != nil {
		return err
	}
	if n != nil && (n.Version == 1 || !g.intoFrozen) {
		return &Error{Op: "join", Path: n.full(""), Err: ErrFrozen, Hint: "thaw it first"}
	}
	return nil
}

// CloneFD gives a descriptor of the group's version 2 directory for clone3's
// CLONE_INTO_CGROUP (SysProcAttr.CgroupFD), which costs no grace period: for those who
// cannot leave it to Start. It belongs to the group and is good until Close. On a host
// without version 2 it is -1. A process enters version 1 hierarchies, as long as it has
// one thread, by writing "0" to the file "tasks" in each Directory.
//
// A frozen group is refused with ErrFrozen, whichever freezer holds it (see IntoFrozen).
func (g *Group) CloneFD() (int, error) {
	if err := g.ready(); err != nil {
		return -1, err
	}
	n := g.unified()
	if n == nil {
		return -1, nil
	}
	if err := g.mayJoin(n); err != nil {
		return -1, err
	}
	fd, err := g.open(n)
	if err != nil {
		return -1, &Error{Op: "open", Path: n.full(""), Err: err}
	}
	return fd, nil
}

// joinFiles opens the "tasks" files of the group's version 1 directories, for
// a single-threaded process that writes "0" to each to enter the group by
// itself, which costs no grace period. The caller closes them. On a host
// without version 1 there are none.
func (g *Group) joinFiles() ([]*os.File, error) {
	if err := g.ready(); err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range g.nodes {
		n := &g.nodes[i]
		if n.Version == 2 {
			continue
		}
		err := g.mayJoin(n)
		if err == nil {
			var dir, fd int
			if dir, err = g.open(n); err == nil {
				if fd, err = openAt(dir, "tasks", unix.O_WRONLY); err == nil {
					files = append(files, os.NewFile(uintptr(fd), n.full("tasks")))
					continue
				}
			}
			err = &Error{Op: "open", Path: n.full("tasks"), Err: err}
		}
		for _, f := range files {
			f.Close()
		}
		return nil, err
	}
	return files, nil
}

// explainEntry adds to the error of a thread that could not enter the group by one of
// the joinFiles what is known of the cause.
func (g *Group) explainEntry(file string, err error) error {
	for i := range g.nodes {
		if n := &g.nodes[i]; n.full("tasks") == file {
			return g.explainJoin(n, err)
		}
	}
	return &Error{Op: "join", Path: g.path, Err: err}
}

func (g *Group) explainJoin(n *node, err error) error {
	e := &Error{Op: "join", Path: n.full(""), Err: err}
	var inner *Error
	if errors.As(err, &inner) {
		e.Err = inner.Err
	}
	switch {
	case errors.Is(err, unix.EBUSY) && n.Version == 2:
		e.Hint = "it gives controllers to its children (" + strings.Join(subtreeControl(n, n.path, make([]byte, 512)), " ") +
			"), and such a cgroup may hold no processes: use one of its children"
	case errors.Is(err, unix.EOPNOTSUPP) && n.Version == 2:
		switch kind, _ := typeOf(n); kind {
		case DomainInvalid:
			e.Hint = invalidHint
		case Threaded:
			e.Hint = "it is threaded: processes enter the root of its subtree, and only threads are placed here"
		}
	case errors.Is(err, unix.ENOSPC) && n.Has("cpuset"):
		e.Hint = "its cpuset has no processors or no memory nodes"
	case errors.Is(err, unix.EINVAL) && n.Has("cpu"):
		e.Hint = "a real-time process needs cpu.rt_runtime_us above 0 in the cgroup"
	case errors.Is(err, unix.ESRCH):
		e.Hint = "there is no such process"
	}
	return e
}
