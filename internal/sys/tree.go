package sys

import "golang.org/x/sys/unix"

// OpenTreeNamespace is OPEN_TREE_NAMESPACE of linux/mount.h, since Linux 7.0: the copy of a tree is
// opened as the descriptor of a new mount namespace that has nothing else in it.
const OpenTreeNamespace = 1 << 1

// HasTreeNamespaces reports whether the kernel has it. Flags are looked at before the descriptor,
// which is none (EBADF).
func HasTreeNamespaces() bool {
	_, err := unix.OpenTree(-1, "none", OpenTreeNamespace|unix.OPEN_TREE_CLOEXEC)
	return err == unix.EBADF
}
