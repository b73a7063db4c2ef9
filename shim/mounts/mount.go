package mounts

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/reaper"
)

// Mount mounts a list in order under root. When one fails, those before it are
// unmounted. The reaper starts what helper processes are needed.
func Mount(root string, list []*wire.Mount, r *reaper.Reaper) (err error) {
	for i, m := range list {
		if err = mountOne(root, m, r); err != nil {
			err = fmt.Errorf("mount rootfs %d of %d, %q of type %q: %w", i+1, len(list), m.Source, m.Type, err)
			if i > 0 {
				err = errors.Join(err, Unmount(root))
			}
			return err
		}
	}
	return nil
}

func mountOne(root string, m *wire.Mount, r *reaper.Reaper) error {
	o, err := parseOptions(m.Options)
	if err != nil {
		return err
	}
	target, release, err := resolve(root, m.Target)
	if err != nil {
		return err
	}
	defer release()
	if strings.HasPrefix(m.Type, "fuse.") || strings.HasPrefix(m.Type, "fuse3.") {
		return mountFuse(m, target, r)
	}
	source := m.Source
	if o.loop {
		device, err := attachLoop(source, o.flags&unix.MS_RDONLY != 0)
		if err != nil {
			return err
		}
		// The device lives as long as the mount, once there is one.
		defer device.Close()
		source = device.Name()
	}
	if m.Type == "overlay" && o.uidMap != nil {
		undo, err := mapLayers(o, r)
		if err != nil {
			return err
		}
		defer undo()
	}
	if m.Type == "overlay" {
		err = mountOverlay(source, target, o)
	} else {
		err = unix.Mount(source, target, m.Type, o.flags, strings.Join(o.data, ","))
	}
	if err != nil {
		return err
	}
	return adjust(root, m, o, r)
}

// adjust does what takes a second call once something is mounted. It opens the
// target again, for the descriptor of before is of what lies below the mount.
func adjust(root string, m *wire.Mount, o *options, r *reaper.Reaper) (err error) {
	// A bind takes over the flags of its source.
	const kind = unix.MS_BIND | unix.MS_REC
	remount := o.flags&unix.MS_BIND != 0 && o.flags&unix.MS_REMOUNT == 0 && o.flags&^kind != 0
	remap := o.uidMap != nil && m.Type != "overlay"
	if !remount && !remap && len(o.propagation) == 0 {
		return nil
	}
	mounted, release, err := resolve(root, m.Target)
	if err != nil {
		return err
	}
	defer release()
	if remount {
		if err = unix.Mount("", mounted, "", o.flags&^unix.MS_REC|unix.MS_REMOUNT, ""); err != nil {
			err = fmt.Errorf("set the flags of the bind: %w", err)
		}
	}
	if err == nil && remap {
		err = mapMount(root, m.Target, o, r)
	}
	for _, p := range o.propagation {
		if err == nil {
			if err = unix.Mount("", mounted, "", p, ""); err != nil {
				err = fmt.Errorf("set the propagation: %w", err)
			}
		}
	}
	if err != nil {
		err = errors.Join(err, unix.Unmount(mounted, unix.MNT_DETACH))
	}
	return err
}

// resolve opens a target inside root and gives a path that leads to it whatever
// is renamed or linked meanwhile. Most targets are root itself.
func resolve(root, target string) (path string, release func(), err error) {
	if target == "" || target == "/" {
		return root, func() {}, nil
	}
	fd, err := openInside(root, target)
	if err != nil {
		return "", nil, err
	}
	return "/proc/self/fd/" + strconv.Itoa(fd), func() { unix.Close(fd) }, nil
}

func openInside(root, target string) (int, error) {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", root, err)
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, target, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1, fmt.Errorf("open target %s in %s: %w", target, root, err)
	}
	return fd, nil
}

// Unmount removes everything that is mounted on root, and with it all that
// is mounted below. That there is nothing is no error.
func Unmount(root string) error {
	for {
		switch err := unix.Unmount(root, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err {
		case nil, unix.EINTR:
		case unix.EINVAL, unix.ENOENT:
			return nil
		default:
			return &os.PathError{Op: "unmount", Path: root, Err: err}
		}
	}
}
