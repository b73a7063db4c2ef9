package cgroup

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Create makes the group in every hierarchy, with the parents that it needs,
// or adopts what is there already (Made tells which). On version 2 controllers
// are enabled down to it; on version 1 an empty cpuset gets its parent's
// processors and memory nodes, without which no process may enter.
//
// If it fails, what it made is removed again.
func (h *Host) Create(path string, opts ...Option) (*Group, error) {
	o := gather(opts)
	g, err := h.newGroup(path, o)
	if err != nil {
		return nil, err
	}
	if o.intent != nil {
		dirs, err := g.toMake()
		if err != nil {
			return nil, err
		}
		if err := o.intent(dirs); err != nil {
			return nil, err
		}
	}
	var denied error
	kept := g.nodes[:0]
	for i := range g.nodes {
		err := g.makeNode(&g.nodes[i], &o)
		if err != nil && o.permitted && Denied(err) && g.nodes[i].made == 0 {
			denied = err
			continue
		}
		if err != nil {
			g.undo()
			return nil, err
		}
		kept = append(kept, g.nodes[i])
	}
	g.nodes = kept
	if len(kept) == 0 {
		return nil, denied
	}
	return g, nil
}

// toMake lists the directories that are not there, in the order of Made.
func (g *Group) toMake() (dirs []string, err error) {
	var st unix.Stat_t
	for i := range g.nodes {
		n := &g.nodes[i]
		for path := n.path; path != "/"; path = parentOf(path) {
			dir := n.dir + path
			err := unix.Lstat(dir, &st)
			if err == nil || err == unix.ENOTDIR {
				break
			}
			if err != unix.ENOENT {
				return nil, &Error{Op: "look for", Path: dir, Err: err}
			}
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// makeNode makes the directory in one hierarchy and fits it for processes.
func (g *Group) makeNode(n *node, o *options) error {
	if err := g.mayCreate(n); err != nil {
		return err
	}
	var made []string
	if err := makePath(n, n.path, &made); err != nil {
		for _, dir := range slices.Backward(made) {
			removeEmpty(dir)
		}
		e := &Error{Op: "create", Path: n.full(""), Err: err}
		switch err {
		case unix.EAGAIN:
			e.Hint = "cgroup.max.depth or cgroup.max.descendants of a parent forbids it"
		case unix.ENOTDIR:
			e.Hint = "a part of the name is that of a file which the kernel has in each cgroup; choose another"
		}
		return e
	}
	if len(made) > 0 && made[len(made)-1] == n.full("") {
		n.made = max(n.made, len(made))
	}
	if n.Version == 2 {
		return g.enableDown(n, o)
	}
	if n.Has("cpuset") {
		return fillCpuset(n)
	}
	return nil
}

// makePath makes the directory, and those above it that are missing, and lists
// what it made. The first try is the usual case and costs one call. Another
// process may remove an empty parent in between, so a few tries are made.
func makePath(n *node, path string, made *[]string) (err error) {
	if path == "/" {
		return nil
	}
	dir := (&node{Hierarchy: n.Hierarchy, path: path}).full("")
	for range 16 {
		switch err = unix.Mkdir(dir, 0o755); err {
		case nil:
			if !slices.Contains(*made, dir) {
				*made = append(*made, dir)
			}
			return nil
		case unix.EEXIST:
			// The kernel's own files are in the way of cgroups by their names (tasks,
			// cgroup.procs).
			var st unix.Stat_t
			if err = unix.Lstat(dir, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
				return unix.ENOTDIR
			}
			if err == nil {
				return nil
			}
			if err != unix.ENOENT { // removed since
				return err
			}
			continue
		case unix.EINTR:
			continue
		case unix.ENOENT:
		default:
			return err
		}
		if parentOf(path) == "/" {
			return err // the mount itself is gone
		}
		if err := makePath(n, parentOf(path), made); err != nil {
			return err
		}
	}
	return err
}

// undo removes what Create made, parents too, as far as it is empty: for who finds out
// that the group is not to be used. What was there before stays.
func (g *Group) undo() {
	for i := range g.nodes {
		removeMade(&g.nodes[i])
	}
	g.Close()
}

// removeMade removes what was made of the node's path, from its end upwards, as
// far as it is empty.
func removeMade(n *node) {
	for path := n.path; n.made > 0 && path != "/"; path = parentOf(path) {
		at := node{Hierarchy: n.Hierarchy, path: path}
		if removeEmpty(at.full("")) != nil {
			return
		}
		n.made--
	}
}

// removeEmpty removes a cgroup without children; that it is gone already is fine.
func removeEmpty(dir string) error {
	for {
		switch err := unix.Rmdir(dir); err {
		case nil, unix.ENOENT:
			return nil
		case unix.EINTR:
		default:
			return err
		}
	}
}

// fillCpuset gives an empty version 1 cpuset the processors and memory nodes of
// its parent, which is filled before. Groups that are already there and empty
// are filled too, no matter what created them: while they are empty nothing can run in
// them, so their owner has decided nothing yet.
func fillCpuset(n *node) error {
	buf := make([]byte, 1024)
	for _, file := range []string{n.file("cpuset.cpus"), n.file("cpuset.mems")} {
		if _, err := inherit(n, file, buf); err != nil {
			return err
		}
	}
	return nil
}

// inherit gives the file's value, which is the parent's if it was empty.
func inherit(n *node, file string, buf []byte) (string, error) {
	own, err := readRecord(unix.AT_FDCWD, n.full(file), buf)
	if err != nil {
		return "", &Error{Op: "read", Path: n.full(file), Err: err}
	}
	if value := strings.TrimSpace(string(own)); value != "" || n.path == "/" {
		return value, nil
	}
	value, err := inherit(&node{Hierarchy: n.Hierarchy, path: parentOf(n.path)}, file, buf)
	if err != nil {
		return "", err
	}
	if err := writeFile(unix.AT_FDCWD, n.full(file), value); err != nil {
		return "", &Error{Op: "write", Path: n.full(file), Value: value, Err: err}
	}
	return value, nil
}
