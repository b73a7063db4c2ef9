package cgrouptool

import (
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
)

// A Found is one cgroup of one hierarchy.
type Found struct {
	Hierarchy *cgroup.Hierarchy
	Path      string
	// Controllers are those that act there: the hierarchy's on version 1, those
	// that are enabled on version 2.
	Controllers []string
}

// List visits the cgroups below a target, itself included, hierarchy by hierarchy.
func (t *Tools) List(target Target, visit func(Found) error) error {
	g, err := t.Open(target)
	if err != nil {
		return err
	}
	defer g.Close()
	for _, h := range t.in(g) {
		err := t.walk(h, g.Path(), -1, func(path string) error {
			f := Found{Hierarchy: h, Path: path, Controllers: h.Controllers}
			if h.Version == 2 {
				f.Controllers = t.words(h, path, "cgroup.controllers")
			}
			return visit(f)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Spelling is how lscgroup(1) writes it, and what -g takes.
func (f Found) Spelling() string {
	list := strings.Join(f.Controllers, ",")
	if list == "" {
		list = f.Hierarchy.String()
	}
	return list + ":" + f.Path
}

// walk visits the cgroups of one hierarchy from a path on, parents first, down
// to a depth; -1 is all.
func (t *Tools) walk(h *cgroup.Hierarchy, path string, depth int, visit func(path string) error) error {
	if err := visit(path); err != nil || depth == 0 {
		return err
	}
	names, err := t.children(t.dir(h, path))
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := t.walk(h, below(path, name), depth-1, visit); err != nil {
			return err
		}
	}
	return nil
}
