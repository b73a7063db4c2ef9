package cgroup

import (
	"errors"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Delegate hands the group's version 2 directory over to a user, who may then
// make groups below it and move their processes among them: the directory and
// the files in it that /sys/kernel/cgroup/delegate lists get the uid, and no
// other file, since the limits stay ours.
//
// Version 1 directories are never handed over: there a user could harm the
// host by them. The runtime spec wants the rest of its conditions looked after
// by the caller: a new cgroup namespace, and a writable cgroup mount in it.
func (g *Group) Delegate(uid int) error {
	n := g.unified()
	if n == nil {
		return &Error{Op: "delegate", Path: g.path, Err: ErrNoController, Hint: "only version 2 groups can be delegated"}
	}
	if err := g.mayChange("delegate", n); err != nil {
		return err
	}
	dir, err := g.open(n)
	if err == nil {
		err = unix.Fchown(dir, uid, -1)
	}
	if err != nil {
		return &Error{Op: "delegate", Path: n.full(""), Err: err}
	}
	for _, file := range g.host.delegateFiles() {
		err := unix.Fchownat(dir, file, uid, -1, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil && err != unix.ENOENT { // a controller's file, where it is not enabled
			return &Error{Op: "delegate", Path: n.full(file), Err: err}
		}
	}
	return nil
}

// delegateFiles lists the files that go with a delegation; kernels before 4.15
// do not say, and the spec names these three for them.
func (h *Host) delegateFiles() []string {
	text, err := os.ReadFile(h.root + "/sys/kernel/cgroup/delegate")
	if err != nil {
		return []string{"cgroup.procs", "cgroup.subtree_control", "cgroup.threads"}
	}
	// Names of files, and nothing that leads out of the directory.
	return slices.DeleteFunc(strings.Fields(string(text)), func(name string) bool {
		return name != path.Base(name) || name == ".."
	})
}

// Denied reports whether an operation failed for lack of privileges: file
// permissions, a read-only mount, no cgroup mounts at all, or a group that
// belongs to another owner. A rootless runtime goes on without a group then,
// if no limit was asked for.
func Denied(err error) bool {
	return errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, ErrNotMounted)
}

// privileged reports whether this process may write everywhere in the
// hierarchies: root may, but not the root of a user namespace.
func (h *Host) privileged() bool {
	home := h.Unified()
	if home == nil {
		if len(h.hierarchies) == 0 {
			return false
		}
		home = &h.hierarchies[0]
	}
	return unix.Access(home.dir, unix.W_OK) == nil
}

// vacate moves the processes of a delegated group into a child of it, so that
// the group can give controllers to its other children. Forks come in between;
// the list is read until it is empty.
func (g *Group) vacate(at *node, leaf string) error {
	if owner := g.host.placeOwner(at, at.path, at.path); owner.Ownership != Delegated {
		return &NotOwnerError{Op: "move processes of", Path: at.full(""), Owner: owner}
	}
	child := node{Hierarchy: at.Hierarchy, path: strings.TrimSuffix(at.path, "/") + "/" + escapeName(leaf)}
	if err := unix.Mkdir(child.full(""), 0o755); err != nil && err != unix.EEXIST {
		return &Error{Op: "create", Path: child.full(""), Err: err}
	}
	for range 100 {
		pids, err := pidsIn(unix.AT_FDCWD, at.full("cgroup.procs"), nil)
		if err != nil {
			return &Error{Op: "read", Path: at.full("cgroup.procs"), Err: err}
		}
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			if err := writeFile(unix.AT_FDCWD, child.full("cgroup.procs"), strconv.Itoa(pid)); err != nil && err != unix.ESRCH {
				return &Error{Op: "write", Path: child.full("cgroup.procs"), Value: strconv.Itoa(pid), Err: err}
			}
		}
	}
	return &Error{Op: "move all processes out of", Path: at.full(""), Err: ErrBusy}
}
