package changes

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// open opens what the scratch has by a name. No link leads away from there.
func open(scratch int, name string, flags int) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags) | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(scratch, name, &how)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

// seize is open once there is no box any more. Its owner may have left himself no rights to it;
// they are taken.
func seize(scratch int, name string, flags int) (int, error) {
	fd, err := open(scratch, name, flags)
	if errors.Is(err, unix.EACCES) {
		var st unix.Stat_t
		if err := unix.Fstatat(scratch, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return -1, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		if err = unix.Fchmodat(scratch, name, st.Mode&0o7777|0o700, 0); err == nil {
			return open(scratch, name, flags)
		}
	}
	return fd, err
}

// list tells what a directory of the scratch has, and returns it open.
func list(scratch int, name string) ([]entry, int, error) {
	fd, err := seize(scratch, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, -1, err
	}
	entries, err := entriesOf(fd, name)
	if err != nil {
		unix.Close(fd)
	}
	return entries, fd, err
}

func entriesOf(fd int, name string) ([]entry, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(dup), name)
	names, err := f.Readdirnames(-1)
	f.Close()
	entries := make([]entry, len(names))
	for i := 0; i < len(names) && err == nil; i++ {
		entries[i].name = names[i]
		err = unix.Fstatat(fd, names[i], &entries[i].st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "list", Path: name, Err: err}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return entries, nil
}

func lstat(scratch int, name string) (st unix.Stat_t, err error) {
	err = unix.Fstatat(scratch, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

func readLink(scratch int, name string) string {
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(scratch, name, target)
	if err != nil {
		return ""
	}
	return string(target[:n])
}

// same reports whether a file holds what it did. One that can't be read may differ.
func (w *walker) same(upper, lower string) bool {
	fd, err := seize(w.scratch.FD, upper, unix.O_RDONLY)
	if err != nil {
		return false
	}
	a := os.NewFile(uintptr(fd), upper)
	defer a.Close()
	b, err := os.OpenFile(lower, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer b.Close()
	if info, err := b.Stat(); err != nil || !info.Mode().IsRegular() {
		return false
	}
	return equal(a, b)
}
