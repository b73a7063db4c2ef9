package container

import (
	"fmt"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/sys"
	"golang.org/x/sys/unix"
)

// sources looks at the sources of bind mounts: whether a missing target is to be
// a directory or a file.
func (m *maker) sources(r reach) error {
	m.spawn.Facts.Sources = make([]compile.Source, len(m.plan.Mounts))
	for i := range m.plan.Mounts {
		mount := &m.plan.Mounts[i]
		if !mount.Bind || mount.Inside != "" && mount.IDMap == nil {
			continue
		}
		if mount.Source == m.plan.NotifyDir {
			m.spawn.Facts.Sources[i].Dir = true // made by us, or it would be
			continue
		}
		var st unix.Stat_t
		if err := unix.Stat(mount.Source, &st); err != nil {
			st.Mode = unix.S_IFDIR // which most are
			if err := r.failed(fmt.Errorf("config.json: %s/source: bind mount of %q: %w", mount.At, mount.Source, err)); err != nil {
				return err
			}
		}
		m.spawn.Facts.Sources[i].Dir = st.Mode&unix.S_IFMT == unix.S_IFDIR
		if mount.IDMap != nil {
			fd, err := r.idmapped(mount)
			if err != nil {
				return err
			}
			if m.spawn.Mounts == nil {
				m.spawn.Mounts = map[int]int{}
			}
			m.spawn.Mounts[i] = fd
		}
	}
	return nil
}

// joinedUserNamespace is the descriptor of the user namespace that the container joins,
// or -1.
func (m *maker) joinedUserNamespace() int {
	for _, j := range m.spawn.Joins {
		if j.Flag == unix.CLONE_NEWUSER {
			return j.FD
		}
	}
	return -1
}

// sourceTree opens the source of a bind mount for the init, which is not allowed to.
// With our rights, but in the container's mount namespace: there the attributes of the
// host's mounts are locked, so that the container can't take them away, and a copy
// keeps that.
func (m *maker) sourceTree(number uint64) error {
	if number >= uint64(len(m.plan.Mounts)) || !m.plan.Mounts[number].Bind {
		return fmt.Errorf("the container's init asks for the source of mount %d, which has none", number)
	}
	mount := &m.plan.Mounts[number]
	fd, err := -1, error(unix.EACCES)
	if m.privileged() { // without, the init has all the rights that we have
		sys.OnThrowawayThread(func() { fd, err = openTreeIn(m.child.Pid, mount) })
	}
	if err != nil {
		return fmt.Errorf("config.json: %s/source: bind mount of %q: %w", mount.At, mount.Source, err)
	}
	defer unix.Close(fd)
	return m.child.SendDescriptor(fd)
}

// openTreeIn is for a thread that ends with it.
func openTreeIn(pid int, mount *plan.Mount) (int, error) {
	if err := enterMounts(pid); err != nil {
		return -1, err
	}
	return unix.OpenTree(unix.AT_FDCWD, mount.Source, openTreeFlags(mount))
}

func openTreeFlags(mount *plan.Mount) uint {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	if mount.Recursive {
		flags |= unix.AT_RECURSIVE
	}
	return flags
}
