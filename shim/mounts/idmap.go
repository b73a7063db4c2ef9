package mounts

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/kernel"
	"github.com/berth-runtime/berth/internal/namespace"
	"github.com/berth-runtime/berth/shim/reaper"
)

// mapped is a detached copy of the mount tree at path with ids mapped.
func mapped(path string, o *options, attr uint64, r *reaper.Reaper) (int, error) {
	release := r.Hold()
	userns, err := namespace.NewUser(o.uidMap, o.gidMap)
	release()
	if err != nil {
		return -1, err
	}
	defer unix.Close(userns)
	tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, fmt.Errorf("copy the mount of %s: %w", path, err)
	}
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_IDMAP | attr, Userns_fd: uint64(userns),
		Propagation: unix.MS_PRIVATE,
	})
	if err != nil {
		unix.Close(tree)
		if err == unix.ENOSYS {
			err = kernel.IDMap.Missing(err)
		}
		return -1, fmt.Errorf("map the ids of %s (its file system must be one that can): %w", path, err)
	}
	return tree, nil
}

// mapMount replaces the mount on target by one with ids mapped.
func mapMount(root, target string, o *options, r *reaper.Reaper) error {
	plain, release, err := resolve(root, target)
	if err != nil {
		return err
	}
	defer release()
	tree, err := mapped(plain, o, 0, r)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := unix.Unmount(plain, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("remove the mount without id maps: %w", err)
	}
	below, release, err := resolve(root, target)
	if err != nil {
		return err
	}
	defer release()
	return unix.MoveMount(tree, "", unix.AT_FDCWD, below, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// mapLayers makes an overlay's lower directories ones with ids mapped, by a private,
// read-only mount of their common parent in a temporary directory. An overlay takes
// only layers that are mounted in our namespace, but it needs them to be so just
// while it is mounted: undo takes the mount away again.
func mapLayers(o *options, r *reaper.Reaper) (undo func(), err error) {
	lower := lowerDirs(o)
	if len(lower) == 0 {
		return nil, fmt.Errorf("an overlay with id maps needs a lowerdir")
	}
	parent := commonParent(lower)
	tree, err := mapped(parent, o, unix.MOUNT_ATTR_RDONLY, r)
	if err != nil {
		return nil, err
	}
	defer unix.Close(tree)
	dir, err := os.MkdirTemp("", "berth-layers-")
	if err != nil {
		return nil, err
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		os.Remove(dir)
		return nil, fmt.Errorf("mount the layers on %s: %w", dir, err)
	}
	undo = func() {
		unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		os.Remove(dir)
	}
	for i, layer := range lower {
		rel, err := filepath.Rel(parent, layer)
		if err != nil {
			undo()
			return nil, err
		}
		lower[i] = filepath.Join(dir, rel)
	}
	o.data = withLowerDirs(o.data, lower)
	return undo, nil
}
