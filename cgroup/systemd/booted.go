package systemd

import "golang.org/x/sys/unix"

// Booted reports whether systemd is the init system, as sd_booted(3) has it: its directory is there
// if, and only if, it is.
func Booted() bool {
	var st unix.Stat_t
	return unix.Lstat("/run/systemd/system", &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}
