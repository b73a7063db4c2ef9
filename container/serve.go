package container

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/berth-runtime/berth/compile"
	"github.com/berth-runtime/berth/plan"
	"github.com/berth-runtime/berth/rootfs"
	specs "github.com/opencontainers/runtime-spec/specs-go"
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
		m.runtime.warn("the kernel refuses an overlay of %s: what is below %s can't be written to, and its sockets and pipes are the host's", l.Lower, l.Path)
		return nil
	case compile.CopyFrom:
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		m.copyFrom = dup
		return err
	case compile.CopyTo:
		defer unix.Close(m.copyFrom)
		return m.copyUp(&m.plan.Mounts[ask.Value], fd)
	}
	return fmt.Errorf("the container's init asks for %d, which means nothing", ask.Kind)
}

// copyUp fills a tmpfs with what it is about to cover.
//
// The kernel charges a page to the cgroup of who writes it first, and that is us: a
// process is charged by its memory's owner (get_mem_cgroup_from_mm), so no thread of
// ours can be elsewhere, and the init, which is in the container's cgroup, makes calls
// from a list and knows no loops. So what the container may have in memory is kept to
// here, besides the size of the tmpfs.
func (m *maker) copyUp(mount *plan.Mount, to int) error {
	most, entry := memoryFor(m.spec.Linux)
	err := rootfs.CopyTree(m.copyFrom, to, most)
	if err == nil {
		return nil
	}
	hint := ""
	switch {
	case errors.Is(err, rootfs.ErrTooLarge):
		hint = fmt.Sprintf(" than the %d bytes of %s", most, entry)
	case errors.Is(err, unix.ENOSPC):
		hint = " (the tmpfs is full: its options size= and nr_inodes= say how much it takes)"
	}
	return fmt.Errorf("config.json %s: tmpcopyup to %s: %w%s", mount.At, mount.Destination, err, hint)
}

// memoryFor is how much memory a container may have, with its swap, and which entry
// of the config says so; 0 for as much as there is.
func memoryFor(linux *specs.Linux) (most int64, entry string) {
	if linux == nil || linux.Resources == nil || linux.Resources.Memory == nil {
		return 0, ""
	}
	memory := linux.Resources.Memory
	switch {
	case memory.Limit == nil || *memory.Limit <= 0, memory.Swap != nil && *memory.Swap < 0:
		return 0, ""
	case memory.Swap != nil && *memory.Swap > 0:
		return *memory.Swap, "/linux/resources/memory/swap"
	}
	return *memory.Limit, "/linux/resources/memory/limit"
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
