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
