package container

import (
	"fmt"
	"os"
	"strconv"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/rootfs"
	"golang.org/x/sys/unix"
)

// setLimit sets a resource limit that the process may not set itself.
func setLimit(pid int, p *plan.Process, i int) error {
	l := &p.Rlimits[i]
	err := unix.Prlimit(pid, l.Resource, &unix.Rlimit{Cur: l.Soft, Max: l.Hard}, nil)
	if err == nil {
		return nil
	}
	hint := ""
	if err == unix.EPERM {
		hint = " (raising a hard limit needs CAP_SYS_RESOURCE, which the runtime lacks here; ask for less)"
	}
	return fmt.Errorf("config.json: %s: set %s to %d:%d: %w%s", l.At, l.Name, l.Soft, l.Hard, err, hint)
}

// setScheduler sets the scheduler of a process that may not do so any more.
func setScheduler(pid int, p *plan.Process) error {
	s := p.Scheduler
	err := unix.SchedSetAttr(pid, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: s.Policy, Flags: s.Flags, Nice: s.Nice, Priority: s.Priority,
		Runtime: s.Runtime, Deadline: s.Deadline, Period: s.Period, Util_min: uint32(s.Clamps), Util_max: uint32(s.Clamps >> 32),
	}, 0)
	if err != nil {
		return fmt.Errorf("%s/scheduler: set the scheduler: %w", p.At, err)
	}
	return nil
}

// userName names a user of this host, by number where it has no name.
func userName(uid uint32) string {
	// Opened by package os, it would be the one descriptor for which the runtime makes
	// its poller.
	if fd, err := unix.Open("/etc/passwd", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
		f := os.NewFile(uintptr(fd), "/etc/passwd")
		defer f.Close()
		if u, err := rootfs.UserByID(f, uid); err == nil {
			return u.Name
		}
	}
	return strconv.FormatUint(uint64(uid), 10)
}
