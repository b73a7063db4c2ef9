package container

import (
	"fmt"
	"os"
	"strconv"

	"github.com/berth-runtime/berth/compile"
	"github.com/berth-runtime/berth/rootfs"
	"golang.org/x/sys/unix"
)

// serve does what the first process waits for while it is made.
func (m *maker) serve(ask compile.Record, fd int) error {
	if fd >= 0 {
		defer unix.Close(fd)
	}
	switch ask.Kind {
	case compile.Ready:
		return nil
	case compile.Cgroup:
		return m.startUnit()
	case compile.Console:
		return m.o.deliverConsole(fd)
	case compile.Hooks:
		return m.createHooks()
	case compile.StartHooks:
		return m.startHooks(&m.plan.Hooks, m.plan.Process.Env)
	case compile.MapIDs:
		return mapIDs(m.child.Pid, &m.plan.IDs, m.privileged())
	case compile.MountFlags:
		return m.remount(compile.ParseMountChange(ask.Value), fd)
	case compile.Device:
		return m.sameDevice(int(ask.Value), fd)
	case compile.Limits:
		return setLimit(m.child.Pid, &m.plan.Process, int(ask.Value))
	case compile.Listener:
		return m.deliverListener(m.plan.Process.Seccomp, m.child.Pid, fd)
	case compile.Plain:
		l := &m.spawn.Facts.Layers[ask.Value]
		m.runtime.warn("the kernel refuses an overlay of %s: what is below %s can't be written to", l.Lower, l.Path)
		return nil
	case compile.CopyFrom:
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		m.copyFrom = dup
		return err
	case compile.CopyTo:
		defer unix.Close(m.copyFrom)
		if err := rootfs.CopyTree(m.copyFrom, fd); err != nil {
			mount := &m.plan.Mounts[ask.Value]
			return fmt.Errorf("config.json %s: tmpcopyup to %s: %w", mount.At, mount.Destination, err)
		}
		return nil
	}
	return fmt.Errorf("the container's init asks for %d, which means nothing", ask.Kind)
}

// sameDevice refuses a file that stands where a device is to be made, unless it
// is that device ("MUST generate an error", config-linux.md).
func (m *maker) sameDevice(i, fd int) error {
	d := &m.plan.Devices[i]
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at %s: %w", d.Path, err)
	}
	kind := uint32(unix.S_IFCHR)
	switch d.Type {
	case 'b':
		kind = unix.S_IFBLK
	case 'p':
		kind = unix.S_IFIFO
	}
	if st.Mode&unix.S_IFMT == kind && (d.Type == 'p' || st.Rdev == unix.Mkdev(d.Major, d.Minor)) {
		return nil
	}
	at := ""
	if d.At != "" {
		at = "config.json " + d.At + ": "
	}
	return fmt.Errorf("%smake the device %s (%c %d:%d): another file is there already (%s)", at, d.Path, d.Type, d.Major, d.Minor, fileKind(&st))
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

// adjustOOM sets how likely the kernel is to kill the process. Lowering it takes
// CAP_SYS_RESOURCE of the host, so it is done from here.
func (c *Container) adjustOOM(pid int, adjust *int, at string) error {
	if adjust == nil {
		return nil
	}
	err := os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", strconv.AppendInt(nil, int64(*adjust), 10), 0)
	if err == nil {
		return nil
	}
	hint := ""
	if os.IsPermission(err) {
		hint = " (lowering it needs CAP_SYS_RESOURCE)"
	}
	return fmt.Errorf("config.json %s/oomScoreAdj: set it to %d: %w%s", at, *adjust, err, hint)
}
