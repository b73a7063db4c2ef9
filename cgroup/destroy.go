package cgroup

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Destroy removes the group's directories, with all groups below them, where
// they are ours (or forced, and not adopted), and then the parents that Create made for them,
// as far as those are empty. That they are gone already is no error.
//
// Processes that are ending are waited for, up to the host's Timeout; then
// the error is ErrBusy and names some. Destroy kills no process: call Kill first.
// Processes that a version 1 freezer holds are let go, since they could not end.
func (g *Group) Destroy() error { return g.destroy(false) }

// Purge is Kill and Destroy in one: the processes that are left are killed. If
// there are none it costs no more than Destroy.
func (g *Group) Purge() error { return g.destroy(true) }

func (g *Group) destroy(kill bool) error {
	until := time.Now().Add(g.host.Timeout)
	var busy []*node
	var failed error
	keep := func(n *node, err error) {
		var e *Error
		if !errors.As(err, &e) {
			err = &Error{Op: "remove", Path: n.full(""), Err: err}
		}
		if failed == nil {
			failed = err
		}
	}
	// Version 2 first: it can be waited for, and a process leaves all
	// hierarchies at once.
	for _, n := range g.byPreference() {
		if n.made == 0 && (!g.force || g.adopt) || n.path == "/" {
			continue
		}
		switch err := removeEmpty(n.full("")); err {
		case nil:
			g.removeParents(n)
		case unix.EBUSY, unix.ENOTEMPTY:
			busy = append(busy, n)
		default:
			keep(n, err)
		}
	}
	if kill && len(busy) > 0 {
		if err := g.Kill(); err != nil && !errors.Is(err, os.ErrNotExist) {
			keep(busy[0], err)
		}
	}
	for _, n := range busy {
		if err := g.removeBusy(n, until); err != nil {
			keep(n, err)
			continue
		}
		g.removeParents(n)
	}
	g.Close()
	return failed
}

// removeParents removes the parents that this group made, as far as they are empty.
func (g *Group) removeParents(n *node) {
	if n.made > 1 {
		removeMade(&node{Hierarchy: n.Hierarchy, path: parentOf(n.path), made: n.made - 1})
	}
}

// removeBusy removes a directory that has children or processes.
func (g *Group) removeBusy(n *node, until time.Time) error {
	for round := 0; ; round++ {
		dir, err := g.open(n)
		if err == nil {
			err = removeBelow(dir)
		}
		if err == nil || gone(err) {
			err = removeEmpty(n.full(""))
		}
		if err != unix.EBUSY && err != unix.ENOTEMPTY {
			return err
		}
		pids, err := g.procsOf(n, true)
		if err != nil && !gone(err) {
			return err
		}
		if len(pids) > 0 && n.Version == 1 && n.Has("freezer") {
			if err := g.thawTree(n); err != nil && !gone(err) {
				return err
			}
		}
		empty, err := g.awaitEmpty(n, until)
		if err != nil && !gone(err) {
			return err
		}
		// Empty and still busy: a child appeared in between, or the last
		// process is on its way out and version 1 does not say when it is.
		if empty && round > 0 && breathe(round, until) || empty && round == 0 {
			continue
		}
		return &Error{Op: "remove", Path: n.full(""), Err: ErrBusy, Hint: "it has processes" + listed(pids)}
	}
}

// removeBelow removes the groups below a directory, deepest first, as far as
// they are free of processes.
func removeBelow(dir int) error {
	var failed error
	err := walkTree(dir, func(int) error { return nil }, func(parent int, name string) error {
		if err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR); err != nil && err != unix.ENOENT && failed == nil {
			failed = err
		}
		return nil
	})
	if err != nil {
		return err
	}
	return failed
}

// listed names some processes for a message.
func listed(pids []int) string {
	if len(pids) == 0 {
		return ""
	}
	text := fmt.Sprintf(" (pid %d", pids[0])
	for _, pid := range pids[1:min(3, len(pids))] {
		text += fmt.Sprintf(", %d", pid)
	}
	if len(pids) > 3 {
		text += fmt.Sprintf(" and %d more", len(pids)-3)
	}
	return text + ")"
}
