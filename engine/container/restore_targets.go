package container

import (
	"fmt"
	"strings"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/rootfs"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// makeTargets makes what the container's mounts are mounted on, where it is missing:
// criu expects it to be there, and a root file system recreated has none of it. What is
// below a mount of criu's own making, such as a tmpfs, comes with that.
func (b *bringer) makeTargets() error {
	if b.plan.Namespace(specs.MountNamespace) == nil {
		return nil
	}
	for i := range b.plan.Mounts {
		m := &b.plan.Mounts[i]
		if err := b.makeTarget(m, covering(b.plan.Mounts[:i], m.Destination)); err != nil {
			return fmt.Errorf("config.json: %s/destination: %w", m.At, err)
		}
	}
	return nil
}

// covering is the last of the mounts that a path lies below.
func covering(mounts []plan.Mount, name string) (found *plan.Mount) {
	for i := range mounts {
		if strings.HasPrefix(name, mounts[i].Destination+"/") {
			found = &mounts[i]
		}
	}
	return found
}

func (b *bringer) makeTarget(m, below *plan.Mount) error {
	dir, name := b.plan.Root.Path, m.Destination
	if below != nil {
		if !below.Bind {
			return nil
		}
		dir, name = below.Source, strings.TrimPrefix(name, below.Destination)
	}
	isDir := true
	if m.Bind {
		var st unix.Stat_t
		if err := unix.Stat(m.Source, &st); err != nil {
			return fmt.Errorf("bind mount of %q: %w", m.Source, err)
		}
		isDir = st.Mode&unix.S_IFMT == unix.S_IFDIR
	}
	root, err := rootfs.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	ids := &b.plan.IDs
	uid, gid := ids.Root()
	return root.Make(name, isDir, hostID(uid, ids.UID), hostID(gid, ids.GID))
}
