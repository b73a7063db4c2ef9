package cgroup

import (
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Ownership tells whose a group is. The kernel enforces nothing here: two
// managers that write to the same group undo each other's work, so that each
// group has a single writer.
type Ownership int

// Who may write to a group.
const (
	Foreign   Ownership = iota // created by another program, not delegated
	Ours                       // on the caller's record, or made through this value
	Delegated                  // below a group that systemd or an administrator handed over
	Systemd                    // part of a unit that is not delegated
	Kernel                     // the root of the mount
)

// Owner is whose a group is, and why we think so.
type Owner struct {
	Ownership
	Unit string // of Systemd, and of Delegated where a unit was
}

// NotOwnerError refuses a write into a group with another owner. It counts as a
// permission error for errors.Is.
type NotOwnerError struct {
	Op    string
	Path  string
	Owner Owner
}

func (e *NotOwnerError) Error() string {
	advice := "use your own cgroup, or force it"
	switch {
	case e.Owner.Ownership == Kernel:
		advice = "name a group below it"
	case e.Owner.Ownership == Systemd && strings.HasSuffix(e.Owner.Unit, ".slice"):
		advice = "use a scope or a service with Delegate=yes in it, or force it"
	case e.Owner.Ownership == Systemd:
		advice = "set Delegate=yes there, or force it"
	}
	return e.Op + " " + e.Path + ": it " + e.Owner.String() + " (" + advice + ")"
}

// String says whose a group is, as what follows "it" or the group's name.
func (o Owner) String() string {
	switch o.Ownership {
	case Ours:
		return "was created by the caller"
	case Delegated:
		return "is delegated to the caller"
	case Systemd:
		if strings.HasSuffix(o.Unit, ".slice") {
			return "belongs to systemd's unit " + o.Unit + ", and slices cannot be delegated"
		}
		return "belongs to systemd's unit " + o.Unit + ", which is not delegated"
	case Kernel:
		return "is the root of the hierarchy"
	}
	return "was not created by the caller"
}

// Is makes it ErrNotOwner, and a permission error.
func (e *NotOwnerError) Is(target error) bool {
	return target == ErrNotOwner || target == fs.ErrPermission
}

// Owner tells whose the group is. A group is ours if Create made it through
// this value, or if the caller brought a record of that (Made, Owned). It is
// delegated if it lies below a directory with the extended attribute
// user.delegate or trusted.delegate (which systemd sets for Delegate=yes), or
// if an ordinary user asks and owns the directory, and no other unit of
// systemd than the one that he runs in is between.
func (g *Group) Owner() Owner {
	owner := Owner{Ownership: Foreign}
	for _, n := range g.byPreference() {
		if owner = g.ownerOf(n); owner.Ownership != Foreign {
			break
		}
	}
	return owner
}

func (g *Group) ownerOf(n *node) Owner {
	if n.made > 0 {
		return Owner{Ownership: Ours}
	}
	if n.path == "/" {
		return Owner{Ownership: Kernel}
	}
	// The unit's own directory stays its manager's when it is delegated: only
	// what is below is handed over.
	return g.host.placeOwner(n, parentOf(n.path), n.path)
}

// placeOwner tells whose a place is: path itself is looked at for a unit's
// name, and from top (path or its parent) upwards for a delegation.
func (h *Host) placeOwner(n *node, top, path string) Owner {
	unit, unitPath := unitOf(path)
	if unitPath == path && top != path {
		// The unit's own directory: what a manager of units above it was
		// delegated (user@1000.service) is that manager's, not ours.
		return Owner{Ownership: Systemd, Unit: unit}
	}
	for at := top; at != "/"; at = parentOf(at) {
		if h.isDelegated(n, at) {
			return Owner{Ownership: Delegated, Unit: unit}
		}
		if at == unitPath {
			break
		}
	}
	if unit != "" {
		if h.isOwnUnit(n, unitPath) {
			return Owner{Ownership: Delegated, Unit: unit}
		}
		return Owner{Ownership: Systemd, Unit: unit}
	}
	if !h.privileged() && h.isMine(n, top) {
		return Owner{Ownership: Delegated}
	}
	return Owner{Ownership: Foreign}
}

// isOwnUnit reports whether a unit is the scope or service in which an ordinary
// user's own manager runs this very process. That manager marks no
// delegations (only the system's does), and the kernel shows no difference
// between a unit with Delegate=yes and one without. A program that uses a unit
// without it can lose controllers to its user's manager, in its own unit only.
func (h *Host) isOwnUnit(n *node, unitPath string) bool {
	if h.privileged() || strings.HasSuffix(unitPath, ".slice") || !h.isMine(n, unitPath) {
		return false
	}
	list, err := h.memberships(0)
	if err != nil {
		return false
	}
	for _, m := range list {
		if m.in(n.Hierarchy) {
			own, err := n.within(m.path)
			_, ownUnit := unitOf(own)
			return err == nil && ownUnit == unitPath
		}
	}
	return false
}

// isMine reports whether the directory belongs to this user.
func (h *Host) isMine(n *node, path string) bool {
	var st unix.Stat_t
	at := node{Hierarchy: n.Hierarchy, path: path}
	return unix.Stat(at.full(""), &st) == nil && int(st.Uid) == os.Geteuid()
}

// isMineUpwards reports whether the directory and all above it belong to this user.
func (h *Host) isMineUpwards(n *node, path string) bool {
	for at := path; at != "/"; at = parentOf(at) {
		if !h.isMine(n, at) {
			return false
		}
	}
	return true
}

// isDelegated looks for the mark of a delegation in the hierarchies that
// systemd uses (unified, else name=systemd), and in the node's own. The
// trusted one shows to the privileged only; the user one is there from Linux
// 5.6 and systemd 251 on.
func (h *Host) isDelegated(n *node, path string) bool {
	for i := range h.hierarchies {
		home := &h.hierarchies[i]
		if home.Version != 2 && home.Name != "systemd" && home != n.Hierarchy {
			continue
		}
		at := node{Hierarchy: home, path: path}
		for _, name := range []string{"user.delegate", "trusted.delegate"} {
			var value [2]byte
			if size, err := unix.Getxattr(at.full(""), name, value[:]); err == nil && size == 1 && value[0] == '1' {
				return true
			}
		}
	}
	return false
}

// unitOf finds the innermost unit of systemd in a path by its name. The
// mapping is systemd's own affair, and other names may be units too; these are
// all that make cgroups.
func unitOf(path string) (name, at string) {
	for at := path; at != "/"; at = parentOf(at) {
		name := at[strings.LastIndexByte(at, '/')+1:]
		i := strings.LastIndexByte(name, '.')
		if i <= 0 {
			continue
		}
		switch name[i:] {
		case ".slice", ".scope", ".service", ".mount", ".swap", ".socket":
			return unescapeName(name), at
		}
	}
	return "", ""
}

// mayCreate refuses places inside of units that are not delegated. Anything
// else may get children, the root included: that is where runtimes that do
// not use systemd have their groups.
func (g *Group) mayCreate(n *node) error {
	parent := parentOf(n.path)
	if unit, _ := unitOf(parent); unit == "" || g.unasked() || n.made > 0 {
		return nil
	}
	if owner := g.host.placeOwner(n, parent, parent); owner.Ownership == Systemd {
		return g.refuse(&NotOwnerError{Op: "create", Path: n.full(""), Owner: owner})
	}
	return nil
}

// unasked reports whether no one wants to know who the owner is: all is allowed.
func (g *Group) unasked() bool { return g.force && g.overruled == nil }

// refuse returns the refusal or, where it is overruled, tells it.
func (g *Group) refuse(refused *NotOwnerError) error {
	if !g.force {
		return refused
	}
	g.overruled(refused)
	return nil
}

// mayChange refuses writes into groups that are neither ours nor delegated.
func (g *Group) mayChange(op string, n *node) error {
	if n.made > 0 || g.unasked() {
		return nil
	}
	if owner := g.ownerOf(n); owner.Ownership != Delegated {
		return g.refuse(&NotOwnerError{Op: op, Path: n.full(""), Owner: owner})
	}
	return nil
}

// mayJoin refuses to put processes into units that are not delegated.
func (g *Group) mayJoin(n *node) error {
	if n.made > 0 || g.unasked() {
		return nil
	}
	if owner := g.ownerOf(n); owner.Ownership == Systemd {
		return g.refuse(&NotOwnerError{Op: "join", Path: n.full(""), Owner: owner})
	}
	return nil
}

// mayEnableIn refuses to enable controllers for the children of units that are
// not delegated. Elsewhere it is allowed: it takes nothing from the owner,
// and without it a child could not be limited at all.
func (g *Group) mayEnableIn(at *node) error {
	if g.unasked() {
		return nil
	}
	if unit, _ := unitOf(at.path); unit == "" {
		return nil
	}
	for i := range g.nodes {
		if n := &g.nodes[i]; n.Hierarchy == at.Hierarchy && n.owns(at.path) {
			return nil
		}
	}
	if owner := g.host.placeOwner(at, at.path, at.path); owner.Ownership == Systemd {
		return g.refuse(&NotOwnerError{Op: "enable controllers in", Path: at.full(""), Owner: owner})
	}
	return nil
}

// owns reports whether a directory of the node's path is one that it made.
func (n *node) owns(path string) bool {
	for at, i := n.path, 0; i < n.made && at != "/"; at, i = parentOf(at), i+1 {
		if at == path {
			return true
		}
	}
	return false
}
