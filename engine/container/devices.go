package container

import (
	"fmt"
	"strconv"

	"github.com/berth-runtime/berth/engine/plan"
	"golang.org/x/sys/unix"
)

// hostDevices looks at the devices of the config that are the host's own: in a user namespace none
// can be made. One of other numbers would be given to the container under the name of that which
// was asked for.
func (m *maker) hostDevices() error {
	for i := range m.plan.Devices {
		d := &m.plan.Devices[i]
		if !d.Bind || d.At == "" {
			continue
		}
		var st unix.Stat_t
		if err := unix.Stat(d.Path, &st); err != nil {
			return fmt.Errorf("config.json: %s: take the device %s from the host, because it can't be created in a user namespace: %w", d.At, d.Path, err)
		}
		if !isDevice(d, &st) {
			return fmt.Errorf("config.json: %s: take the device %s (%c %d:%d) from the host, because it can't be created in a user namespace: it is another one there (%s)",
				d.At, d.Path, d.Type, d.Major, d.Minor, fileKind(&st))
		}
	}
	return nil
}

// sameDevice refuses a file that stands where a device is to be made, unless it
// is that device ("MUST generate an error", config-linux.md).
func (m *maker) sameDevice(i, fd int) error {
	d := &m.plan.Devices[i]
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at %s: %w", d.Path, err)
	}
	if isDevice(d, &st) {
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
