// Package host gathers the facts of the machine that a Plan depends on.
//
// Everything here is found by looking and by trying once, never by version
// numbers. Probing reads /proc and makes harmless calls; it changes nothing.
package host

import (
	"fmt"
	"os"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"golang.org/x/sys/unix"
)

// Host is what was found.
type Host struct {
	UID, GID int
	// InUserNS is set where we run in a user namespace that is not the initial
	// one: mknod and much else is refused there even to its root.
	InUserNS bool
	Cgroups  *cgroup.Host
	Layout   ledger.Layout
	// CgroupBase is where an ordinary user may have cgroups; "" for root.
	CgroupBase string
	// Systemd is nil where no unit is to be made.
	Systemd *Systemd
	// NoMountSetattr is set where the kernel has no mount_setattr(2) (Linux 5.12).
	NoMountSetattr bool
	// Landlock is the version of Landlock that the kernel has, 0 for none.
	Landlock int
}

// Probe looks at this machine.
func Probe() (*Host, error) {
	groups, err := cgroup.Detect()
	if err != nil {
		return nil, fmt.Errorf("find the cgroup hierarchies: %w", err)
	}
	return ProbeBeside(groups)
}

// ProbeBeside is Probe where the hierarchies have been found already, which is the
// larger part of it.
func ProbeBeside(groups *cgroup.Host) (*Host, error) {
	h := &Host{UID: os.Geteuid(), GID: os.Getegid(), InUserNS: InUserNS(), Cgroups: groups, Layout: groups.Layout(),
		Landlock: landlockABI(), NoMountSetattr: !hasMountSetattr()}
	if h.UID != 0 {
		base, err := groups.Base()
		if err != nil {
			return nil, fmt.Errorf("find the cgroups that user %d may use: %w", h.UID, err)
		}
		h.CgroupBase = base
	}
	return h, nil
}

// hasMountSetattr tries the call without its argument, which is refused (EINVAL)
// before anything else is looked at. A filter of an outer container may say EPERM.
func hasMountSetattr() bool {
	_, _, errno := unix.RawSyscall6(unix.SYS_MOUNT_SETATTR, ^uintptr(0), 0, 0, 0, 0, 0)
	return errno == unix.EINVAL
}

// InUserNS reports whether our user namespace maps less than everything
// (user_namespaces(7): the initial one maps all of 2^32-1 ids to themselves).
func InUserNS() bool {
	// A few system calls less than os.ReadFile, on the path of every start.
	fd, err := unix.Open("/proc/self/uid_map", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var text [64]byte
	n, err := unix.Read(fd, text[:])
	return err == nil && string(text[:n]) != "         0          0 4294967295\n"
}
