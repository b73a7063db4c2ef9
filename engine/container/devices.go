package container

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/sys"
	"golang.org/x/sys/unix"
)

// boundDevices finds the devices of the config that are bound into a user namespace, where no
// process can make one. The host's own node is taken if it is that device, with the mode and the
// owner that the config asks for; otherwise a node is made, which takes root outside.
func (m *maker) boundDevices(r reach) error {
	for i := range m.plan.Devices {
		d := &m.plan.Devices[i]
		if !d.Bind || d.At == "" {
			continue
		}
		unfit := m.unfit(d)
		if unfit == nil {
			continue
		}
		made, err := r.node(d)
		switch {
		case err == nil:
			m.spawn.Nodes = append(m.spawn.Nodes, made)
			m.spawn.Facts.Devices = append(m.spawn.Facts.Devices, compile.Node{Device: i})
		case !errors.Is(err, unix.EPERM):
			err = fmt.Errorf("config.json: %s: make the device %s (%c %d:%d) for a user namespace: %w", d.At, d.Path, d.Type, d.Major, d.Minor, err)
		case errors.Is(unfit, errOtherOwner):
			err = nil // it is the device, though with the host's mode and owner
		default:
			err = fmt.Errorf("config.json: %s: take the device %s (%c %d:%d) from the host, because only root can make one for a user namespace: %w", d.At, d.Path, d.Type, d.Major, d.Minor, unfit)
		}
		if err := r.failed(err); err != nil {
			return err
		}
	}
	return nil
}

// errOtherOwner is why the host's node does not fit, where nothing else is wrong with it.
var errOtherOwner = errors.New("it has another mode or owner there")

// unfit tells why the host's node can't stand for the device of the config.
func (m *maker) unfit(d *plan.Device) error {
	var st unix.Stat_t
	if err := unix.Stat(d.Path, &st); err != nil {
		return err
	}
	ids := &m.plan.IDs
	switch {
	case !isDevice(d, &st):
		return fmt.Errorf("it is another file there (%s)", fileKind(&st))
	case d.Own && (st.Mode&0o7777 != d.Mode || st.Uid != hostID(d.UID, ids.UID) || st.Gid != hostID(d.GID, ids.GID)):
		return errOtherOwner
	}
	return nil
}

// newNode makes the device in a file system of its own that is mounted nowhere, and gives a mount
// of the node alone. A tmpfs of ours may be mounted nodev, as /run is.
func newNode(d *plan.Device, ids *plan.IDMaps) (int, error) {
	uid, gid := hostID(d.UID, ids.UID), hostID(d.GID, ids.GID)
	if uid == ^uint32(0) || gid == ^uint32(0) {
		return -1, fmt.Errorf("its owner %d:%d is not mapped", d.UID, d.GID)
	}
	dir, err := sys.NewTmpfs(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	kind := uint32(unix.S_IFCHR)
	if d.Type == 'b' {
		kind = unix.S_IFBLK
	}
	const name = "device"
	if err := unix.Mknodat(dir, name, kind, int(unix.Mkdev(d.Major, d.Minor))); err != nil {
		return -1, err
	}
	if err := unix.Fchownat(dir, name, int(uid), int(gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return -1, err
	}
	if err := unix.Fchmodat(dir, name, d.Mode, 0); err != nil {
		return -1, err
	}
	return unix.OpenTree(dir, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
}

// sameDevice refuses a file that stands where a device is to be made, unless it
// is that device ("MUST generate an error", config-linux.md), or the empty file that a device
// is bound to, of this run or an earlier one.
func (m *maker) sameDevice(i, fd int) error {
	d := &m.plan.Devices[i]
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at %s: %w", d.Path, err)
	}
	if isDevice(d, &st) || d.Bind && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size == 0 {
		return nil
	}
	at := ""
	if d.At != "" {
		at = "config.json: " + d.At + ": "
	}
	return fmt.Errorf("%smake the device %s (%c %d:%d): another file is there already (%s)", at, d.Path, d.Type, d.Major, d.Minor, fileKind(&st))
}

func isDevice(d *plan.Device, st *unix.Stat_t) bool {
	kind := uint32(unix.S_IFCHR)
	switch d.Type {
	case 'b':
		kind = unix.S_IFBLK
	case 'p':
		kind = unix.S_IFIFO
	}
	return st.Mode&unix.S_IFMT == kind && (d.Type == 'p' || st.Rdev == unix.Mkdev(d.Major, d.Minor))
}

func fileKind(st *unix.Stat_t) string {
	device := strconv.Itoa(int(unix.Major(st.Rdev))) + ":" + strconv.Itoa(int(unix.Minor(st.Rdev)))
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return "a regular file"
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFLNK:
		return "a symbolic link"
	case unix.S_IFCHR:
		return "the character device " + device
	case unix.S_IFBLK:
		return "the block device " + device
	case unix.S_IFIFO:
		return "a fifo"
	}
	return "a socket"
}
