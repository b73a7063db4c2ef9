package mounts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/sys"
)

// fsconfigLimit is the longest value that fsconfig(2) takes, less its zero.
const fsconfigLimit = 255

// mountOverlay mounts an overlay however long its options are: mount(2) takes a
// page of them, which some forty layers fill.
func mountOverlay(source, target string, o *options) error {
	data := strings.Join(o.data, ",")
	if len(data) < os.Getpagesize() {
		return unix.Mount(source, target, "overlay", o.flags, data)
	}
	err := mountLayers(source, target, o)
	if errors.Is(err, errNoLayers) {
		return mountRelative(source, target, o)
	}
	return err
}

var errNoLayers = errors.New("the kernel does not take an overlay's layers one by one")

// mountLayers gives the layers one by one, as "lowerdir+", which overlayfs
// takes since Linux 6.8 (lowerdir= of the new mount interface has the same
// limit of 255 bytes for all of them).
func mountLayers(source, target string, o *options) error {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return errNoLayers
	}
	defer unix.Close(fs)
	for _, option := range o.data {
		key, value, hasValue := strings.Cut(option, "=")
		switch {
		case key == "lowerdir":
			for layer := range strings.SplitSeq(value, ":") {
				if len(layer) > fsconfigLimit || strings.Contains(layer, `\`) || layer == "" {
					return errNoLayers // escapes, or data-only layers, after "::"
				}
				if err := unix.FsconfigSetString(fs, "lowerdir+", layer); err != nil {
					return errNoLayers
				}
			}
		case !hasValue:
			err = unix.FsconfigSetFlag(fs, key)
		case len(value) > fsconfigLimit:
			return errNoLayers
		default:
			err = unix.FsconfigSetString(fs, key, value)
		}
		if err != nil {
			return fmt.Errorf("set option %q: %w", option, err)
		}
	}
	if source != "" {
		if err := unix.FsconfigSetString(fs, "source", source); err != nil {
			return fmt.Errorf("set the source: %w", err)
		}
	}
	if o.flags&unix.MS_RDONLY != 0 {
		if err := unix.FsconfigSetFlag(fs, "ro"); err != nil {
			return fmt.Errorf("set ro: %w", err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return fmt.Errorf("make the overlay: %w%s", err, complaint(fs))
	}
	mnt, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attributes(o.flags))
	if err != nil {
		return fmt.Errorf("mount the overlay: %w%s", err, complaint(fs))
	}
	defer unix.Close(mnt)
	return unix.MoveMount(mnt, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// complaint is what the file system has said in its context, if anything.
func complaint(fs int) string {
	buf := make([]byte, 1024)
	n, err := unix.Read(fs, buf)
	if err != nil || n <= 0 {
		return ""
	}
	return " (" + strings.TrimSpace(strings.TrimPrefix(string(buf[:n]), "e ")) + ")"
}

func attributes(flags uintptr) (attr int) {
	for _, f := range [...]struct {
		flag uintptr
		attr int
	}{
		{unix.MS_RDONLY, unix.MOUNT_ATTR_RDONLY}, {unix.MS_NOSUID, unix.MOUNT_ATTR_NOSUID},
		{unix.MS_NODEV, unix.MOUNT_ATTR_NODEV}, {unix.MS_NOEXEC, unix.MOUNT_ATTR_NOEXEC},
		{unix.MS_NOATIME, unix.MOUNT_ATTR_NOATIME}, {unix.MS_NODIRATIME, unix.MOUNT_ATTR_NODIRATIME},
		{unix.MS_STRICTATIME, unix.MOUNT_ATTR_STRICTATIME},
	} {
		if flags&f.flag != 0 {
			attr |= f.attr
		}
	}
	return attr
}

// mountRelative makes the options short by writing the lower directories relative
// to their common parent, from where the mount is then made. The thread that
// does so leaves the process's file system context and ends afterwards, so that
// nothing else of the shim ever stands in that directory.
func mountRelative(source, target string, o *options) error {
	lower := lowerDirs(o)
	parent := commonParent(lower)
	for i, dir := range lower {
		rel, err := filepath.Rel(parent, dir)
		if err != nil {
			return err
		}
		lower[i] = rel
	}
	target, err := filepath.Abs(target)
	if err != nil {
		return err
	}
	data := strings.Join(withLowerDirs(o.data, lower), ",")
	if len(data) >= os.Getpagesize() {
		return fmt.Errorf("options of %d bytes, relative to %s still %d, exceed a page", len(strings.Join(o.data, ",")), parent, len(data))
	}
	sys.OnThrowawayThread(func() {
		if err = unix.Unshare(unix.CLONE_FS); err == nil {
			err = unix.Chdir(parent)
		}
		if err == nil {
			err = unix.Mount(source, target, "overlay", o.flags, data)
		}
	})
	return err
}

func lowerDirs(o *options) []string {
	for _, option := range o.data {
		if value, ok := strings.CutPrefix(option, "lowerdir="); ok {
			return strings.Split(value, ":")
		}
	}
	return nil
}

// withLowerDirs is a copy of the options with other lower directories.
func withLowerDirs(data, lower []string) []string {
	out := append([]string(nil), data...)
	for i, option := range out {
		if strings.HasPrefix(option, "lowerdir=") {
			out[i] = "lowerdir=" + strings.Join(lower, ":")
		}
	}
	return out
}

func commonParent(paths []string) string {
	if len(paths) == 0 {
		return "/"
	}
	parent := filepath.Dir(paths[0])
	for _, p := range paths[1:] {
		for parent != "/" && !strings.HasPrefix(p, parent+"/") {
			parent = filepath.Dir(parent)
		}
	}
	return parent
}
