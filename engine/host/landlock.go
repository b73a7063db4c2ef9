package host

import "golang.org/x/sys/unix"

// landlockABI asks which version of Landlock the kernel has, 0 for none: where it
// is not built in (ENOSYS) or not switched on (EOPNOTSUPP).
func landlockABI() int {
	const wantVersion = 1
	abi, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, wantVersion)
	if errno != 0 {
		return 0
	}
	return int(abi)
}
