package main

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/launch"
)

// A chroot is one whose / is no mount point, in which a command has failed for that, and has undone
// what it began.
type chroot struct {
	preserve []uintptr // the descriptors that are the container's
}

// noteChroot has the command tried again where its error is about the chroot. That costs nothing
// where there is none.
func (p *program) noteChroot(err error, preserve []uintptr) {
	if errors.Is(err, launch.ErrChroot) {
		p.inChroot = &chroot{preserve: preserve}
	}
}

// again executes this program anew in a mount namespace of its own, whose root is the directory of
// the chroot: with the same mounts below it, and without any outside of it. What is mounted there
// does not reach the host. It returns only if that fails, as without CAP_SYS_ADMIN and
// CAP_SYS_CHROOT, and on an initramfs, whose root can't be exchanged. The program has to end then.
func (c *chroot) again() error {
	// This thread alone goes there, until it executes the program. It is never unlocked: it may
	// have another root then.
	runtime.LockOSThread()
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := becomeRoot(); err != nil {
		return err
	}
	if err := unix.Chdir(cwd); err != nil {
		return &os.PathError{Op: "chdir", Path: cwd, Err: err}
	}
	for _, fd := range c.preserve {
		if _, err := unix.FcntlInt(fd, unix.F_SETFD, 0); err != nil {
			return os.NewSyscallError("fcntl", err)
		}
	}
	return &os.PathError{Op: "execve", Path: "/proc/self/exe", Err: unix.Exec("/proc/self/exe", os.Args, os.Environ())}
}

// becomeRoot makes the thread's root that of its new mount namespace.
func becomeRoot() error {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	dir, err := unix.Open("/", flags, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: "/", Err: err}
	}
	defer unix.Close(dir)
	// The namespace's own root is a directory outside, and without a name here. Joining a
	// namespace leads to its root (setns(2)), even the one that the thread is in.
	ns, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: "/proc/thread-self/ns/mnt", Err: err}
	}
	defer unix.Close(ns)
	if err := unix.Setns(ns, unix.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("setns", err)
	}
	// The host's mounts still arrive here, ours don't go there.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	tree, err := unix.OpenTree(dir, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("open_tree", err)
	}
	defer unix.Close(tree)
	if err := unix.MoveMount(tree, "", dir, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return os.NewSyscallError("move_mount", err)
	}
	if err := unix.Fchdir(tree); err != nil {
		return os.NewSyscallError("fchdir", err)
	}
	// The old root is on top of the new one then, and goes with all that is in it.
	if err := unix.PivotRoot(".", "."); err != nil {
		return os.NewSyscallError("pivot_root", err)
	}
	return os.NewSyscallError("umount", unix.Unmount(".", unix.MNT_DETACH))
}
