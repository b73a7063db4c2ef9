package container

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/rootfs"
	"github.com/berth-runtime/berth/internal/kernel"
	"github.com/berth-runtime/berth/internal/proc/mountinfo"
	"golang.org/x/sys/unix"
)

// remount works out how attributes of a mount of the child are changed by mount(2),
// where the kernel has no mount_setattr: that call takes all flags again, so that
// those that are to stay have to be known.
func (m *maker) remount(change compile.MountChange, fd int) error {
	id, err := rootfs.MountID("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return fmt.Errorf("change a mount's attributes: %w", err)
	}
	mounts, err := mountinfo.Of(strconv.Itoa(m.child.Pid))
	if err != nil {
		return err
	}
	steps, err := remountSteps(mounts, id, change)
	if err != nil {
		return err
	}
	for _, step := range append(steps, compile.RemountStep{}) {
		message, ok := step.Message()
		if !ok {
			return fmt.Errorf("change the attributes of the mount on %q: %w", step.Path, unix.ENAMETOOLONG)
		}
		if err := m.child.Send(message); err != nil {
			return err
		}
	}
	return nil
}

// remountSteps lists the mount and, where all of its tree is meant, those below it.
func remountSteps(mounts []mountinfo.Entry, id int, change compile.MountChange) ([]compile.RemountStep, error) {
	at := slices.IndexFunc(mounts, func(e mountinfo.Entry) bool { return e.ID == id })
	if at < 0 {
		return nil, fmt.Errorf("change a mount's attributes: mount %d is not among those of the container", id)
	}
	top := mounts[at]
	if change.Propagation != 0 {
		flags := change.Propagation
		if change.Recursive {
			flags |= unix.MS_REC // this much mount(2) does by itself
		}
		return []compile.RemountStep{{Flags: flags}}, nil
	}
	steps := []compile.RemountStep{{Flags: remountFlags(top.Options, change)}}
	if !change.Recursive {
		return steps, nil
	}
	tree := map[int]bool{id: true}
	points := map[string]bool{top.Point: true}
	// A mount stands behind its parent in the table, unless it was moved: so the
	// table is gone through until nothing is found any more.
	for found := true; found; {
		found = false
		for _, e := range mounts {
			if !tree[e.Parent] || tree[e.ID] {
				continue
			}
			tree[e.ID], found = true, true
			below, ok := strings.CutPrefix(e.Point, strings.TrimSuffix(top.Point, "/")+"/")
			if !ok || points[e.Point] {
				return nil, fmt.Errorf("change the attributes of all mounts below %s: one on %s lies under another: %w", top.Point, e.Point, kernel.MountSetattr.Missing(nil))
			}
			points[e.Point] = true
			steps = append(steps, compile.RemountStep{Flags: remountFlags(e.Options, change), Path: below})
		}
	}
	return steps, nil
}

// attributes are the names of a mount's attributes in a table of mounts, the bit
// that mount_setattr(2) has for each, and that of mount(2).
var attributes = [...]struct {
	name         string
	attr, flag   uint64
	ofAccessTime bool
}{
	{"ro", unix.MOUNT_ATTR_RDONLY, unix.MS_RDONLY, false},
	{"nosuid", unix.MOUNT_ATTR_NOSUID, unix.MS_NOSUID, false},
	{"nodev", unix.MOUNT_ATTR_NODEV, unix.MS_NODEV, false},
	{"noexec", unix.MOUNT_ATTR_NOEXEC, unix.MS_NOEXEC, false},
	{"nodiratime", unix.MOUNT_ATTR_NODIRATIME, unix.MS_NODIRATIME, false},
	{"nosymfollow", unix.MOUNT_ATTR_NOSYMFOLLOW, unix.MS_NOSYMFOLLOW, false},
	{"noatime", unix.MOUNT_ATTR_NOATIME, unix.MS_NOATIME, true},
	{"relatime", unix.MOUNT_ATTR_RELATIME, unix.MS_RELATIME, true},
}

// remountFlags are all the flags of a mount after a change of those that it has.
func remountFlags(have string, change compile.MountChange) uint64 {
	flags, accessTime := uint64(unix.MS_REMOUNT|unix.MS_BIND), false
	// Which access times are kept is one field of several values; relatime is 0.
	changed := (change.Set|change.Clear)&unix.MOUNT_ATTR__ATIME != 0
	for _, a := range attributes {
		on := mountinfo.HasOption(have, a.name)
		switch {
		case a.ofAccessTime && changed:
			on = change.Set&unix.MOUNT_ATTR__ATIME == a.attr
		case a.ofAccessTime:
		case change.Set&a.attr != 0:
			on = true
		case change.Clear&a.attr != 0:
			on = false
		}
		if on {
			flags |= a.flag
			accessTime = accessTime || a.ofAccessTime
		}
	}
	if !accessTime {
		flags |= unix.MS_STRICTATIME // or mount(2) makes it relatime
	}
	return flags
}
