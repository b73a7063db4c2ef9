package cgroup

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Group is one cgroup: a directory in each hierarchy that it spans. It may be
// used by several goroutines. Directories are opened when they are first
// needed and stay open until Close or Destroy.
type Group struct {
	host       *Host
	path       string
	nodes      []node
	force      bool
	overruled  func(*NotOwnerError) // nil where no one asks, which spares the look at the owner
	adopt      bool
	intoFrozen bool
	supervisor string

	mu sync.Mutex // guards the descriptors in nodes
}

// node is the group's directory in one hierarchy.
type node struct {
	*Hierarchy
	path string // below the mount point
	made int    // how many of the path's last directories are ours
	fd   int    // -1 until needed
}

// newGroup lays out a group without touching the host.
func (h *Host) newGroup(path string, o options) (*Group, error) {
	clean, err := cleanPath(path)
	if err != nil {
		return nil, err
	}
	if len(h.hierarchies) == 0 {
		return nil, ErrNotMounted
	}
	for _, name := range o.only {
		one := options{only: []string{name}}
		if !slices.ContainsFunc(h.hierarchies, func(h Hierarchy) bool { return one.selected(&h) }) {
			return nil, &Error{Op: "find the hierarchy of", Path: name, Err: ErrNoController, Hint: "/proc/cgroups and cgroup.controllers list those of this machine"}
		}
	}
	g := &Group{
		host: h, path: clean, force: o.force, overruled: o.overruled, adopt: o.adopt, intoFrozen: o.intoFrozen, supervisor: o.supervisor,
	}
	g.nodes = make([]node, 0, len(h.hierarchies))
	for i := range h.hierarchies {
		if o.selected(&h.hierarchies[i]) {
			n := node{Hierarchy: &h.hierarchies[i], path: clean, fd: -1}
			n.recall(o)
			g.nodes = append(g.nodes, n)
		}
	}
	return g, nil
}

// recall counts what of the node's path is on the caller's record.
func (n *node) recall(o options) {
	for path, made := n.path, 1; path != "/" && slices.Contains(o.record, n.dir+path); path = parentOf(path) {
		n.made = made
		made++
	}
}

// Open gives the group at path, which must exist in at least one hierarchy.
// Directories on the caller's record (Made) are taken to be there still, if
// the first of them is.
func (h *Host) Open(path string, opts ...Option) (*Group, error) {
	o := gather(opts)
	g, err := h.newGroup(path, o)
	if err != nil {
		return nil, err
	}
	if err := g.dropAbsent(len(o.record) > 0); err != nil {
		return nil, err
	}
	return g, nil
}

// OfProcess gives the group that a process is in: its own place in each
// hierarchy. pid 0 is this process.
func (h *Host) OfProcess(pid int, opts ...Option) (*Group, error) {
	o := gather(opts)
	list, err := h.memberships(pid)
	if err != nil {
		return nil, err
	}
	g, err := h.newGroup("/", o)
	if err != nil {
		return nil, err
	}
	kept := g.nodes[:0]
	var outside error
	for _, n := range g.nodes {
		i := slices.IndexFunc(list, func(m membership) bool { return m.in(n.Hierarchy) })
		if i < 0 || list[i].deleted {
			continue
		}
		if n.path, err = n.within(list[i].path); err != nil {
			outside = err
			continue
		}
		n.recall(o)
		kept = append(kept, n)
		// The group's own name is the one on version 2, else the first that is not the root.
		if n.Version == 2 || g.path == "/" {
			g.path = n.path
		}
	}
	g.nodes = kept
	if len(kept) == 0 && outside != nil {
		return nil, outside
	}
	if err := g.dropAbsent(false); err != nil {
		return nil, err
	}
	return g, nil
}

// dropAbsent opens the group's directories and forgets those that are not
// there. With trust, the first one on record speaks for the others.
func (g *Group) dropAbsent(trust bool) error {
	var failed error
	kept := make([]node, 0, len(g.nodes))
	seen := false
	for _, n := range g.nodes {
		if trust && seen && n.made > 0 {
			kept = append(kept, n)
			continue
		}
		fd, err := openAt(unix.AT_FDCWD, n.full(""), unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			if err != unix.ENOENT && failed == nil {
				failed = &Error{Op: "open", Path: n.full(""), Err: err}
			}
			continue
		}
		seen = seen || n.made > 0
		n.fd = fd
		kept = append(kept, n)
	}
	g.nodes = kept
	if len(kept) > 0 {
		return nil
	}
	if failed == nil {
		failed = &Error{Op: "open the cgroup", Path: g.path, Err: unix.ENOENT}
	}
	return failed
}

// Host gives the host that the group is on.
func (g *Group) Host() *Host { return g.host }

// Path is the group's path below the mount points.
func (g *Group) Path() string { return g.path }

// Directory gives the group's directory in the hierarchy of a controller, or of the
// name that Hierarchy.String gives ("unified", "name=systemd"); "" if it has none there.
func (g *Group) Directory(controller string) string {
	if n := g.node(controller); n != nil {
		return n.full("")
	}
	return ""
}

// Made lists the directories that Create made for this group, for the caller's
// record: given to Made later, they make the group its own again.
func (g *Group) Made() []string {
	var list []string
	for i := range g.nodes {
		n := &g.nodes[i]
		path := n.path
		for range n.made {
			list = append(list, n.dir+path)
			path = parentOf(path)
		}
	}
	return list
}

// Close gives the descriptors back. The group itself stays, and so does the
// use of this value, which opens what it needs again.
func (g *Group) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.nodes {
		if g.nodes[i].fd >= 0 {
			unix.Close(g.nodes[i].fd)
			g.nodes[i].fd = -1
		}
	}
	return nil
}

// node finds the group's directory for a controller.
func (g *Group) node(controller string) *node {
	one := options{only: []string{controller}}
	for i := range g.nodes {
		if one.selected(g.nodes[i].Hierarchy) {
			return &g.nodes[i]
		}
	}
	return nil
}

// unified gives the group's directory on version 2, or nil.
func (g *Group) unified() *node {
	for i := range g.nodes {
		if g.nodes[i].Version == 2 {
			return &g.nodes[i]
		}
	}
	return nil
}

// open gives the descriptor of the group's directory, which it keeps.
func (g *Group) open(n *node) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n.fd < 0 {
		fd, err := openAt(unix.AT_FDCWD, n.full(""), unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return -1, err
		}
		n.fd = fd
	}
	return n.fd, nil
}

// full is the path of the group's directory, or of a file in it.
func (n *node) full(file string) string {
	dir := n.dir + n.path
	if n.path == "/" {
		dir = strings.TrimSuffix(n.dir, "/")
		if file == "" {
			return n.dir
		}
	}
	if file == "" {
		return dir
	}
	return dir + "/" + file
}

// read gives a file of the group as one record.
func (g *Group) read(n *node, file string, buf []byte) ([]byte, error) {
	dir, err := g.open(n)
	if err == nil {
		buf, err = readRecord(dir, n.file(file), buf)
	}
	if err != nil {
		return nil, &Error{Op: "read", Path: n.full(n.file(file)), Err: err}
	}
	return buf, nil
}

// write gives a file of the group a value.
func (g *Group) write(n *node, file, value string) error {
	dir, err := g.open(n)
	if err == nil {
		err = writeFile(dir, n.file(file), value)
	}
	if err != nil {
		return &Error{Op: "write", Path: n.full(n.file(file)), Value: value, Err: err}
	}
	return nil
}

// gone reports whether an error says that the cgroup is not there any more: a
// file of a removed one, opened before, answers ENODEV.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV)
}
