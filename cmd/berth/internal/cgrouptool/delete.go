package cgrouptool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-runtime/berth/cgroup"
)

// Removal is how a cgroup is removed.
type Removal struct {
	Recursive bool // with the cgroups below it
	// What becomes of processes in it; with neither, they forbid the removal.
	Kill bool
	Move bool // to the parent
}

// Delete removes a cgroup from the hierarchies that are meant.
func (t *Tools) Delete(target Target, how Removal) error {
	path, options, err := t.place(target)
	if err != nil {
		return err
	}
	if path == "/" {
		return errors.New("delete /: the root of a hierarchy cannot be removed")
	}
	g, err := t.Open(target)
	if err != nil {
		return err
	}
	defer g.Close()
	if err := t.mayChange("delete", g); err != nil {
		return err
	}
	if err := t.mayEmpty(g, how); err != nil {
		return err
	}
	// What is delegated to us is ours to remove too, mark or not. Parents stay: they are not on
	// this record.
	var record []string
	for _, h := range t.in(g) {
		record = append(record, t.dir(h, path))
	}
	if how.Move {
		for _, h := range t.in(g) {
			if err := t.moveUp(h, path); err != nil {
				return err
			}
		}
	}
	doomed, err := t.Host.Open(path, append(options, cgroup.Made(record))...)
	if err != nil {
		return err
	}
	defer doomed.Close()
	end := doomed.Destroy
	if how.Kill {
		end = doomed.Purge
	}
	if err := end(); err != nil {
		return err
	}
	return t.Tidy(target)
}

// mayEmpty refuses to remove children and processes that were not asked for.
func (t *Tools) mayEmpty(g *cgroup.Group, how Removal) error {
	var inside []string
	for _, h := range t.in(g) {
		names, err := t.children(t.dir(h, g.Path()))
		if err != nil {
			return fmt.Errorf("delete %s: %w", g.Path(), err)
		}
		for _, name := range names {
			if !slices.Contains(inside, name) {
				inside = append(inside, name)
			}
		}
	}
	if len(inside) > 0 && !how.Recursive {
		return fmt.Errorf("delete %s: there are cgroups below it (%s): remove them with it by -r", g.Path(), some(inside))
	}
	if how.Kill || how.Move {
		return nil
	}
	pids, err := g.AllProcs()
	if err != nil {
		return err
	}
	if len(pids) > 0 {
		return fmt.Errorf("delete %s: there are processes in it (pid %s): end them, or use --move (to its parent) or --kill", g.Path(), some(pids))
	}
	return nil
}

// moveUp moves the processes of a cgroup, and of those below, to its parent, in
// one hierarchy: elsewhere they may be in other places, and stay there. They
// may fork meanwhile, so the list is read until it is empty.
func (t *Tools) moveUp(h *cgroup.Hierarchy, path string) error {
	from, err := t.Host.Open(path, cgroup.Only(h.String()))
	if err != nil {
		return err
	}
	defer from.Close()
	up := parent(path)
	options := []cgroup.Option{cgroup.Only(h.String()), cgroup.Made(t.marked(up))}
	if t.Force {
		options = append(options, cgroup.Overruling(t.overrule))
	}
	to, err := t.Host.Open(up, options...)
	if err != nil {
		return err
	}
	defer to.Close()
	for range 100 {
		pids, err := from.AllProcs()
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			if err := to.Join(pid); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return fmt.Errorf("move the processes of %s to its parent: they fork faster than they can be moved", path)
}

// some shows the first few of a list.
func some[T any](list []T) string {
	const most = 4
	var b strings.Builder
	for i, v := range list[:min(most, len(list))] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, v)
	}
	if len(list) > most {
		fmt.Fprintf(&b, " and %d more", len(list)-most)
	}
	return b.String()
}

// parent is the path above, "/" of "/".
func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}
