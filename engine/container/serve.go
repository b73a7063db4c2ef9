package container

import (
	"errors"
	"fmt"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/engine/rootfs"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// serve does what the first process waits for while it is made.
func (m *maker) serve(ask program.Request, fd int) error {
	if fd >= 0 {
		defer unix.Close(fd)
	}
	switch ask.Kind {
	case program.AskReady:
		return nil
	case program.AskCgroup:
		return m.startUnit()
	case program.AskConsole:
		return m.o.deliverConsole(fd)
	case program.AskHooks:
		return m.createHooks()
	case program.AskStartHooks:
		return m.startHooks(m.plan, m.plan.Process.Env)
	case program.AskMapIDs:
		return mapIDs(m.child.Pid, &m.plan.IDs, m.privileged())
	case program.AskMountFlags:
		return m.remount(compile.ParseMountChange(ask.Value), fd)
	case program.AskLinkTarget:
		return m.linkTarget(ask.Value, fd)
	case program.AskSourceTree:
		return m.sourceTree(ask.Value)
	case program.AskDevice:
		return m.sameDevice(int(ask.Value), fd)
	case program.AskLimits:
		return setLimit(m.child.Pid, &m.plan.Process, int(ask.Value))
	case program.AskScheduling:
		return setScheduler(m.child.Pid, &m.plan.Process)
	case program.AskListener:
		return m.deliverListenerOf(m.child, m.plan.Process.Seccomp, fd, m.o.Refusals)
	case program.AskPlain:
		m.plain = append(m.plain, &m.spawn.Facts.Layers[ask.Value])
		return nil
	case program.AskScratch:
		return m.handScratch(fd)
	case program.AskCopyFrom:
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		m.copyFrom = dup
		return err
	case program.AskCopyTo:
		defer unix.Close(m.copyFrom)
		return m.copyUp(&m.plan.Mounts[ask.Value], fd)
	}
	return fmt.Errorf("the container's init asks for %d, which means nothing", ask.Kind)
}

// linkTarget tells the init what to make of a mount target that is a dangling link.
func (m *maker) linkTarget(number uint64, root int) error {
	if number >= uint64(len(m.plan.Mounts)) || root < 0 {
		return fmt.Errorf("the container's init asks for the target of mount %d, which does not exist", number)
	}
	mount := &m.plan.Mounts[number]
	missing, err := rootfs.Missing(root, mount.Destination)
	for i, name := range missing {
		message, ok := compile.LinkStep{Path: name, Last: i == len(missing)-1}.Message()
		if !ok {
			err = unix.ENAMETOOLONG
			break
		}
		if err := m.child.Send(message); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("config.json: %s/destination: make %s, to which a link leads: %w", mount.At, mount.Destination, err)
	}
	return nil
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
	return fmt.Errorf("config.json: %s: tmpcopyup to %s: %w%s", mount.At, mount.Destination, err, hint)
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
