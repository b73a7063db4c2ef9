package namespace

import "golang.org/x/sys/unix"

// Beside reports whether a process is beside us and no container's: it is in our pid namespace, and
// in our mount namespace or one with the same root directory, as systemd gives its services. Only
// what is cheap is looked at, and nothing that the process could hold up, as it could by its
// arguments: those are in its memory, of which a page may be a file's on a silent file system.
func Beside(pid int) bool {
	if its, err := Of(pid, "pid"); err != nil || !isOurs(its, "pid") {
		return false
	}
	its, err := Of(pid, "mnt")
	if err != nil {
		return false
	}
	return isOurs(its, "mnt") || sameRoot(pid)
}

func isOurs(id ID, kind string) bool {
	ours, err := Of(0, kind)
	return err == nil && id == ours
}

// sameRoot compares by what the kernel knows already, as the root may be on a file system that does
// not answer.
func sameRoot(pid int) bool {
	const flags, mask = unix.AT_STATX_DONT_SYNC | unix.AT_NO_AUTOMOUNT, unix.STATX_INO
	var its, ours unix.Statx_t
	return unix.Statx(unix.AT_FDCWD, folder(pid)+"/root", flags, mask, &its) == nil &&
		unix.Statx(unix.AT_FDCWD, "/", flags, mask, &ours) == nil &&
		its.Ino == ours.Ino && its.Dev_major == ours.Dev_major && its.Dev_minor == ours.Dev_minor
}
