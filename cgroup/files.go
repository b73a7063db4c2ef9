package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cgroup/ledger"
)

// ReadFile gives a kernel file of the group, without the line break at its end.
// The name tells the hierarchy: "memory.max" is where the memory controller
// is, "cgroup.events" on version 2, "tasks" on version 1.
func (g *Group) ReadFile(name string) (string, error) {
	n, err := g.nodeOfFile(name)
	if err != nil {
		return "", err
	}
	text, err := g.read(n, name, make([]byte, 8192))
	return strings.TrimSuffix(string(text), "\n"), err
}

// WriteFile gives a kernel file of the group a value, as it is. On version 2
// the controller is enabled if it is not yet.
func (g *Group) WriteFile(name, value string) error {
	n, err := g.nodeOfFile(name)
	if err != nil {
		return err
	}
	if err := g.mayChange("write "+name+" of", n); err != nil {
		return err
	}
	controller, _, _ := strings.Cut(name, ".")
	w := ledger.Write{Controller: controller, V2: n.Version == 2, File: name, Value: value}
	if _, err := g.applyOne(n, w, nil); err != nil {
		return g.explainWrite(n, w, err)
	}
	return nil
}

// Files lists the kernel's files in the group's directory for a controller (or
// "unified", or "name=systemd").
func (g *Group) Files(controller string) ([]string, error) {
	n := g.node(controller)
	if n == nil {
		return nil, &Error{Op: "list the files of", Path: g.path, Err: ErrNoController, Hint: controller}
	}
	entries, err := os.ReadDir(n.full(""))
	if err != nil {
		return nil, &Error{Op: "list", Path: n.full(""), Err: errno(err)}
	}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// Children lists the names of the groups below this one, in any hierarchy.
func (g *Group) Children() ([]string, error) {
	var names []string
	var failed error
	there := false
	for i := range g.nodes {
		n := &g.nodes[i]
		dir, err := g.open(n)
		var more []string
		if err == nil {
			more, err = children(dir)
		}
		if err == nil {
			there = true
			names = append(names, more...)
		} else if failed == nil {
			failed = &Error{Op: "list", Path: n.full(""), Err: err}
		}
	}
	if !there {
		return nil, failed
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// nodeOfFile finds the directory that a file belongs to by its name.
func (g *Group) nodeOfFile(name string) (*node, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00\n") {
		return nil, fmt.Errorf("%q is not the name of a cgroup file", name)
	}
	prefix, _, dotted := strings.Cut(name, ".")
	var n *node
	switch {
	case !dotted: // tasks, notify_on_release, release_agent
		for i := range g.nodes {
			if g.nodes[i].Version == 1 {
				n = &g.nodes[i]
				break
			}
		}
	case prefix == "cgroup":
		if n = g.unified(); n == nil && len(g.nodes) > 0 {
			n = &g.nodes[0]
		}
	default:
		if n = g.node(prefix); n == nil && strings.HasSuffix(name, ".pressure") {
			n = g.unified()
		}
	}
	if n == nil {
		return nil, &Error{Op: "find", Path: g.path + "/" + name, Err: ErrNoController, Hint: "this group has no directory for " + prefix}
	}
	return n, nil
}

// errno takes the number out of an error of package os, whose path is said already.
func errno(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
