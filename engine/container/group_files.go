package container

import (
	"bytes"
	"path/filepath"
	"slices"

	"github.com/berth-runtime/berth/cgroup"
	"golang.org/x/sys/unix"
)

// Directories and files of the container's cgroup are on record, so that state and delete
// need no look at the host's hierarchies, which takes longer than all else that they do.

// tasksFiles are what a process with one thread writes "0" to for entering the group on version 1.
func tasksFiles(g *cgroup.Group) (files []string) {
	for _, h := range g.Host().Hierarchies() {
		if dir := g.Directory(h.String()); dir != "" && h.Version == 1 {
			files = append(files, filepath.Join(dir, "tasks"))
		}
	}
	return files
}

// madeAll reports whether the group was made in every hierarchy: nothing of it is not below what
// Made lists.
func madeAll(g *cgroup.Group) bool {
	made := g.Made()
	return !slices.ContainsFunc(g.Host().Hierarchies(), func(h *cgroup.Hierarchy) bool {
		dir := g.Directory(h.String())
		return dir != "" && dir != h.Mountpoint && !slices.Contains(made, dir)
	})
}

// removeMade removes directories that Group.Made has listed, parents as far as they are empty, and
// reports whether no group is left there. Where it fails, because it is in use or mounted elsewhere
// for this process, the group is to be opened and destroyed. Others live in the parents that are
// left.
func removeMade(made []string) (left []string, ok bool) {
	for i, dir := range made {
		switch err := unix.Rmdir(dir); {
		case err == nil:
		case i == 0 || dir != filepath.Dir(made[i-1]):
			return nil, false
		case err == unix.EBUSY || err == unix.ENOTEMPTY:
			left = append(left, dir)
		}
	}
	return left, len(made) > 0
}

// freezers lists the files that tell whether the group is frozen.
func freezers(g *cgroup.Group) (files []string) {
	for _, h := range g.Host().Hierarchies() {
		dir := g.Directory(h.String())
		switch {
		case dir == "" || dir == h.Mountpoint: // the root has no freezer
		case h.Version == 2:
			files = append(files, filepath.Join(dir, "cgroup.events"), filepath.Join(dir, "cgroup.freeze"))
		case h.Has("freezer") && h.NoPrefix:
			return nil // "state": the group is to be asked
		case h.Has("freezer"):
			files = append(files, filepath.Join(dir, "freezer.state"))
		}
	}
	return files
}

// frozenBy reads what freezers has listed. Where a file can't be read, because the group is gone or
// is mounted elsewhere for this process, it is an error, and the group must be asked.
func frozenBy(files []string) (bool, error) {
	for _, file := range files {
		text, err := readFileAt(unix.AT_FDCWD, file)
		if err != nil {
			return false, err
		}
		// Each has words that no other has.
		switch string(bytes.TrimSpace(text)) {
		case "FROZEN", "FREEZING", "1":
			return true, nil
		}
		for line := range bytes.Lines(text) {
			if string(bytes.TrimSpace(line)) == "frozen 1" { // of cgroup.events
				return true, nil
			}
		}
	}
	return false, nil
}
