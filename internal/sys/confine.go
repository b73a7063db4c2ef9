package sys

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of Landlock (linux/landlock.h) by the version that brought them.
const (
	landlockFirst    = (1<<13 - 1) &^ (1<<2 | 1<<3) // all of version 1 but reading files and listing directories
	landlockExecute  = 1 << 0
	landlockTruncate = 1 << 14 // 3
	landlockDevices  = 1 << 15 // 5: ioctl on devices that are opened afterwards
	landlockTCP      = 1<<2 - 1
)

// Confine takes from this process, for good, the right to execute anything, to
// make, change or remove files anywhere but beneath the given directories, to use
// TCP, and all of its capabilities but those of the mask keep. Under Landlock it
// can't mount, nor trace who is not confined as it is, either. What is open stays
// open, and the children that there are stay as they are.
//
// On a kernel without Landlock (before Linux 5.13, or not switched on) files are
// as free as before. In a program that cgo was linked into (go build -race does so) nothing is
// taken: Go does not know all of its threads, and has no AllThreadsSyscall then.
func Confine(keep uint64, beneath ...string) error {
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_GETPID, 0, 0, 0); errno == syscall.ENOTSUP {
		return nil
	}
	abi, _, _ := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1)
	ruleset := -1
	if version := int(abi); version > 0 {
		var err error
		if ruleset, err = newRuleset(version, beneath); err != nil {
			return err
		}
		defer unix.Close(ruleset)
	}
	// Each of these is about one thread. Threads to come have them from the one that
	// makes them.
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return os.NewSyscallError("prctl PR_SET_NO_NEW_PRIVS", errno)
	}
	if ruleset >= 0 {
		if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
			return os.NewSyscallError("landlock_restrict_self", errno)
		}
	}
	return limitCapabilities(keep)
}

// newRuleset makes a ruleset that allows to change files beneath the directories.
func newRuleset(version int, beneath []string) (int, error) {
	// struct landlock_ruleset_attr as version 4 has it; an older kernel takes more
	// than it knows where the rest is zero.
	attr := struct{ files, net uint64 }{files: landlockFirst}
	if version >= 3 {
		attr.files |= landlockTruncate
	}
	if version >= 4 {
		attr.net = landlockTCP
	}
	if version >= 5 {
		attr.files |= landlockDevices
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return -1, os.NewSyscallError("landlock_create_ruleset", errno)
	}
	for _, path := range beneath {
		if err := allowBeneath(int(fd), path, attr.files&^landlockExecute); err != nil {
			unix.Close(int(fd))
			return -1, err
		}
	}
	return int(fd), nil
}

func allowBeneath(ruleset int, path string, rights uint64) error {
	dir, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(dir)
	// struct landlock_path_beneath_attr is packed, 12 bytes.
	var rule [12]byte
	*(*uint64)(unsafe.Pointer(&rule[0])) = rights
	*(*int32)(unsafe.Pointer(&rule[8])) = int32(dir)
	const pathBeneath = 1
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), pathBeneath, uintptr(unsafe.Pointer(&rule[0])), 0, 0, 0); errno != 0 {
		return fmt.Errorf("allow changes beneath %s: %w", path, os.NewSyscallError("landlock_add_rule", errno))
	}
	return nil
}

func limitCapabilities(keep uint64) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	for i := range sets {
		part := uint32(keep >> (32 * i))
		sets[i] = unix.CapUserData{Effective: sets[i].Effective & part, Permitted: sets[i].Permitted & part}
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets[0])), 0); errno != 0 {
		return os.NewSyscallError("capset", errno)
	}
	return nil
}
