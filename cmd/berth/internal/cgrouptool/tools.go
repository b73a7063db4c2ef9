package cgrouptool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"golang.org/x/sys/unix"
)

// Tools works on the cgroups of one host.
type Tools struct {
	Host *cgroup.Host
	// Force allows what the owner of a cgroup would have to do, and warns of it.
	Force bool
	// Warn is told what does not stop a command.
	Warn func(message string)

	cut       bool     // it was told that some cgroups are too deep
	closed    bool     // it was told that some may not be looked into
	overruled []string // what was told of Force
	root      string   // "" for the machine, a directory for a copied or made-up tree
}

// New detects the host's cgroups. root is "", or the directory of a copied tree
// (see cgroup.DetectIn).
func New(root string) (*Tools, error) {
	host, err := cgroup.DetectIn(root)
	if err != nil {
		return nil, err
	}
	if host.Mode() == cgroup.None {
		return nil, cgroup.ErrNotMounted
	}
	return &Tools{Host: host, Warn: func(string) {}, root: strings.TrimSuffix(root, "/")}, nil
}

// place is a target on this host: its path, and the hierarchies that are meant.
func (t *Tools) place(target Target) (path string, options []cgroup.Option, err error) {
	if path, _, err = t.resolve(target); err != nil {
		return "", nil, err
	}
	if target.Controllers != nil {
		options = append(options, cgroup.Only(homes(t.Host, target.Controllers)...))
	}
	if t.Force {
		options = append(options, cgroup.Overruling(t.overrule))
	}
	return path, options, nil
}

// Open opens a cgroup to be looked at, or to be changed where it was made by
// these tools.
func (t *Tools) Open(target Target) (*cgroup.Group, error) {
	path, options, err := t.place(target)
	if err != nil {
		return nil, err
	}
	g, err := t.Host.Open(path, append(options, cgroup.Made(t.marked(path)))...)
	if errors.Is(err, fs.ErrNotExist) {
		if hint := t.atRoot(target); hint != "" {
			return nil, fmt.Errorf("%w (%s)", err, hint)
		}
		return nil, fmt.Errorf("%w (berth cgroup tree shows those that there are)", err)
	}
	return g, err
}

// dir is the directory of a path in a hierarchy.
func (t *Tools) dir(h *cgroup.Hierarchy, path string) string {
	dir := t.root + strings.TrimSuffix(h.Mountpoint, "/")
	if path == "/" {
		return dir
	}
	return dir + path
}

// in lists the hierarchies in which the group has a directory.
func (t *Tools) in(g *cgroup.Group) []*cgroup.Hierarchy {
	var list []*cgroup.Hierarchy
	for _, h := range t.Host.Hierarchies() {
		if g.Directory(h.String()) != "" {
			list = append(list, h)
		}
	}
	return list
}

// children lists the names of the cgroups in a directory, in order. One that
// is removed meanwhile has none. Nor has one whose path is longer than the kernel
// takes, or that is closed to us: any process that may write to a cgroup can create such ones, and
// breaks nothing.
func (t *Tools) children(dir string) ([]string, error) {
	// The link count of a directory is 2 and one for each directory in it, which spares most
	// cgroups, the leaves, the reading of their many files' names. (Btrfs and overlays, where a
	// copied tree may be, always say 1.)
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err == nil && st.Nlink == 2 {
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, unix.ENAMETOOLONG) {
		if !t.cut {
			t.cut = true
			t.Warn(fmt.Sprintf("cgroups below %s… are left out: their paths are longer than the kernel takes", dir[:min(len(dir), 60)]))
		}
		return nil, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		if !t.closed {
			t.closed = true
			t.Warn(fmt.Sprintf("cgroups below %s, and below any others that are closed to this user, are left out: permission denied", dir))
		}
		return nil, nil
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	if gone(err) {
		err = nil
	}
	return names, err
}

// below joins a path and a name.
func below(path, name string) string { return strings.TrimSuffix(path, "/") + "/" + name }
