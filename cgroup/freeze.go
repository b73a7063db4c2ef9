package cgroup

import (
	"bytes"
	"errors"
	"slices"
	"time"
)

// Freeze stops all processes of the group and below it, and returns when they
// stand. If they do not within the host's Timeout, they are let go again.
//
// Version 2's freezer is used where the processes are in a version 2 group,
// also on hybrid hosts: what it froze can still be killed and traced.
func (g *Group) Freeze() error {
	n, err := g.freezer()
	if err != nil {
		return err
	}
	if err := g.mayChange("freeze", n); err != nil {
		return err
	}
	until := time.Now().Add(g.host.Timeout)
	if n.Version == 2 {
		err = g.freezeV2(n, "1", until)
	} else {
		err = g.freezeV1(n, until)
	}
	if errors.Is(err, ErrTimeout) {
		g.Thaw()
		return &Error{Op: "freeze", Path: n.full(""), Err: ErrTimeout,
			Hint: "some process waits for a device or a file system and cannot be stopped; all were let go again"}
	}
	return err
}

// Thaw lets the processes of the group go on, whichever freezer stopped them.
func (g *Group) Thaw() error {
	until := time.Now().Add(g.host.Timeout)
	for _, n := range g.byPreference() {
		frozen, err := g.state(n)
		if err != nil || frozen == thawed {
			if err != nil && !gone(err) {
				return err
			}
			continue
		}
		if err := g.mayChange("thaw", n); err != nil {
			return err
		}
		if n.Version == 2 {
			err = g.freezeV2(n, "0", until)
		} else {
			err = g.thawV1(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ThawTree is Thaw for what is below the group as well, as far as version 1's freezer
// holds it: a process in a group frozen by it can't even be killed, and a process that may
// write to a group can freeze one below it.
func (g *Group) ThawTree() error {
	for i := range g.nodes {
		n := &g.nodes[i]
		if n.Version == 2 || !n.Has("freezer") || n.path == "/" {
			continue
		}
		if err := g.mayChange("thaw", n); err != nil {
			return err
		}
		if err := g.thawTree(n); err != nil && !gone(err) {
			return &Error{Op: "thaw", Path: n.full(""), Err: err}
		}
	}
	return nil
}

// Frozen reports whether the group stands still, by itself or by a parent.
func (g *Group) Frozen() (bool, error) {
	n, err := g.frozenNode()
	return n != nil, err
}

type freezeState int

const (
	thawed freezeState = iota
	freezing
	frozen
)

// state asks a node's freezer, if it has one. Version 2's cgroup.freeze says
// what was wanted of this group, cgroup.events what is true of it.
func (g *Group) state(n *node) (freezeState, error) {
	if n.path == "/" {
		return thawed, nil // the root has no freezer
	}
	if n.Version == 2 {
		events, err := g.events(n)
		if err != nil {
			return thawed, err
		}
		if events.frozen {
			return frozen, nil
		}
		var buf [8]byte
		text, err := g.read(n, "cgroup.freeze", buf[:])
		if err == nil && len(text) > 0 && text[0] == '1' {
			return freezing, nil
		}
		return thawed, err
	}
	if !n.Has("freezer") {
		return thawed, nil
	}
	var buf [16]byte
	text, err := g.read(n, "freezer.state", buf[:])
	switch string(bytes.TrimSpace(text)) {
	case "FROZEN":
		return frozen, err
	case "FREEZING":
		return freezing, err
	}
	return thawed, err
}

// frozenNode gives the node that is frozen or on its way there, nil if none is;
// version 1's, which is worse, before version 2's.
func (g *Group) frozenNode() (*node, error) {
	for _, n := range slices.Backward(g.byPreference()) {
		if n.Version != 2 && !n.Has("freezer") {
			continue
		}
		state, err := g.state(n)
		if err != nil && !gone(err) {
			return nil, err
		}
		if state != thawed {
			return n, nil
		}
	}
	return nil, nil
}

// freezer chooses the node whose freezer reaches the group's processes.
func (g *Group) freezer() (*node, error) {
	v1, v2 := g.node("freezer"), g.unified()
	if v2 != nil && v1 != nil && v2.path != "/" {
		// A tool that knows only version 1 may have placed the processes.
		if events, err := g.events(v2); gone(err) || err == nil && !events.populated {
			if pids, err := g.procsOf(v1, true); err == nil && len(pids) > 0 {
				return v1, nil
			}
		}
	}
	n := v2
	if n == nil || n.path == "/" {
		n = v1
	}
	if n == nil || n.path == "/" {
		return nil, &Error{Op: "freeze", Path: g.path, Err: ErrNoController,
			Hint: "it takes a version 2 group or the freezer controller, and does not work on the root"}
	}
	return n, nil
}

// freezeV2 freezes or thaws on version 2 and waits for the kernel's word.
func (g *Group) freezeV2(n *node, value string, until time.Time) error {
	if err := g.write(n, "cgroup.freeze", value); err != nil {
		return err
	}
	want := value == "1"
	done, err := g.awaitEvents(n, until, func(e coreEvents) bool { return e.frozen == want })
	if err == nil && !done {
		err = ErrTimeout
	}
	if err == nil {
		return nil
	}
	e := &Error{Op: "thaw", Path: n.full(""), Err: err}
	if want {
		e.Op = "freeze"
	} else if err == ErrTimeout {
		e.Hint = "a parent of it is frozen"
	}
	return e
}

// freezeV1 freezes on version 1. FREEZING becomes FROZEN when a process reads
// the file and all tasks stand; there is nothing to wait on. Writing again
// catches tasks that were in between when the first write came.
func (g *Group) freezeV1(n *node, until time.Time) error {
	for round := 0; ; round++ {
		if err := g.write(n, "freezer.state", "FROZEN"); err != nil {
			return err
		}
		state, err := g.state(n)
		if err != nil || state == frozen {
			return err
		}
		if !breathe(round, until) {
			return &Error{Op: "freeze", Path: n.full(""), Err: ErrTimeout}
		}
	}
}

func (g *Group) thawV1(n *node) error {
	if err := g.write(n, "freezer.state", "THAWED"); err != nil {
		return err
	}
	state, err := g.state(n)
	if err == nil && state != thawed {
		err = &Error{Op: "thaw", Path: n.full(""), Err: ErrFrozen, Hint: "a parent of it is frozen"}
	}
	return err
}

// thawTree thaws a version 1 group and all below it, so that what was killed
// there can die.
func (g *Group) thawTree(n *node) error {
	dir, err := g.open(n)
	if err != nil {
		return err
	}
	thaw := func(dir int) error {
		err := writeFile(dir, n.file("freezer.state"), "THAWED")
		if gone(err) {
			return nil
		}
		return err
	}
	if err := thaw(dir); err != nil {
		return err
	}
	return walk(dir, thaw)
}
