package namespace

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// An ID tells one namespace from another: the device of nsfs, and the number in it. The zero ID is
// that of none.
type ID struct{ Dev, Ino uint64 }

// Open opens a namespace of a process, or of our own where pid is 0.
func Open(pid int, kind string) (int, error) {
	fd, err := unix.Open(link(pid, kind), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", link(pid, kind), err)
	}
	return fd, nil
}

// Of tells which namespace a process is in, or we where pid is 0. The error is ENOENT where the
// kernel has none of the kind, or there is no such process.
func Of(pid int, kind string) (ID, error) {
	var st unix.Stat_t
	if err := unix.Stat(link(pid, kind), &st); err != nil {
		return ID{}, fmt.Errorf("look at %s: %w", link(pid, kind), err)
	}
	return ID{uint64(st.Dev), st.Ino}, nil
}

// OfFD tells which namespace a descriptor is of.
func OfFD(fd int) (ID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return ID{}, fmt.Errorf("look at an open namespace: %w", err)
	}
	return ID{uint64(st.Dev), st.Ino}, nil
}

// Ours reports whether a descriptor is of the namespace that we are in.
func Ours(fd int, kind string) (bool, error) {
	theirs, err := OfFD(fd)
	if err != nil {
		return false, err
	}
	ours, err := Of(0, kind)
	return err == nil && theirs == ours, err
}

func link(pid int, kind string) string { return folder(pid) + "/ns/" + kind }

func folder(pid int) string {
	if pid == 0 {
		return "/proc/self"
	}
	return "/proc/" + strconv.Itoa(pid)
}
