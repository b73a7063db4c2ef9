package host

import (
	"bytes"
	"fmt"
	"os"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/internal/caps"
	"github.com/berth-runtime/berth/internal/namespace"
	"golang.org/x/sys/unix"
)

// Host is what was found.
type Host struct {
	UID, GID int
	// InUserNS is set where we run in a user namespace that is not the initial
	// one: mknod and much else is refused there even to its root.
	InUserNS bool
	Layout   ledger.Layout
	// Unified is set where no controller is in a hierarchy of version 1.
	Unified bool
	// CgroupBase is where an ordinary user may have cgroups; "" for root.
	CgroupBase string
	// Systemd is nil where no unit is to be made.
	Systemd *Systemd
	// NoMountSetattr is set where the kernel has no kernel.MountSetattr.
	NoMountSetattr bool
	// Lacks are the capabilities that we do not have ourselves.
	Lacks caps.Set
	// Landlock is the version of Landlock that the kernel has, 0 for none.
	Landlock int
	// SELinux is set where the kernel has it; it is looked for where a config has a label.
	SELinux bool
}

// HasSELinux reports whether the kernel has SELinux, switched on: only then does it have
// its file system. What is mounted does not tell, in a container for one. If that can't be
// read, the kernel decides when it gets the label.
func HasSELinux() bool {
	list, err := os.ReadFile("/proc/filesystems")
	return err != nil || bytes.Contains(list, []byte("\tselinuxfs\n"))
}

// Probe looks at this machine, of which the cgroup hierarchies are known.
func Probe(groups *cgroup.Host) (*Host, error) {
	h := &Host{UID: os.Geteuid(), GID: os.Getegid(), InUserNS: InUserNS(), Layout: groups.Layout(),
		Unified: groups.Mode() == cgroup.Unified, Lacks: Lacking(), Landlock: landlockABI(), NoMountSetattr: !hasMountSetattr()}
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

// ChoosesPids reports whether the kernel has kernel.ProcfsOfPids, and we may use it. It is
// asked for a file system that is not made.
func ChoosesPids() bool {
	own, err := namespace.Open(0, "pid")
	if err != nil {
		return false
	}
	defer unix.Close(own)
	fs, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return false
	}
	defer unix.Close(fs)
	return unix.FsconfigSetFd(fs, "pidns", own) == nil
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
