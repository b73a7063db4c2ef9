package rootfs

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// CopyTree copies what a directory holds into another one, with owners, modes
// and times, links and devices as such. Both are descriptors; no link is
// followed, so a tree that changes meanwhile can't lead the copy elsewhere. The
// source is on one file system: what is mounted below it is not copied.
func CopyTree(from, to int) error {
	var st, into unix.Stat_t
	if err := unix.Fstat(from, &st); err != nil {
		return err
	}
	if err := unix.Fstat(to, &into); err != nil {
		return err
	}
	c := copier{int(into.Uid), int(into.Gid)}
	return c.copyDir(from, to, "", st.Dev)
}

// copier is who makes the new files: the owner of the directory that they go
// into. A file system of a user namespace takes none by ids that it does not map,
// which those of the host's root are (EOVERFLOW).
type copier struct{ uid, gid int }

// as makes something as that owner. Ids for file systems are a thread's own;
// other rights come back with the id.
func (c copier) as(make func() error) error {
	if c.uid == 0 && c.gid == 0 || unix.Geteuid() != 0 {
		return make()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, err := unix.SetfsgidRetGid(c.gid); err != nil {
		return err
	}
	if _, err := unix.SetfsuidRetUid(c.uid); err != nil {
		return err
	}
	err := make()
	_, _ = unix.SetfsuidRetUid(0)
	_, _ = unix.SetfsgidRetGid(unix.Getegid())
	return err
}

func (c copier) copyDir(from, to int, where string, device uint64) error {
	names, err := namesIn(from)
	if err != nil {
		return fmt.Errorf("list %q: %w", where, err)
	}
	for _, name := range names {
		path := where + "/" + name
		var st unix.Stat_t
		if err := unix.Fstatat(from, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("look at %q: %w", path, err)
		}
		if st.Dev != device {
			continue
		}
		if err := c.copyEntry(from, to, name, path, &st); err != nil {
			return err
		}
	}
	return nil
}

func namesIn(dir int) ([]string, error) {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "directory")
	defer f.Close()
	return f.Readdirnames(-1)
}

// copyEntry copies what is there by now: st, which was looked at before, becomes that
// of the file or directory that was opened. Or who exchanges them would have a file of
// his own copied with the owner and the mode, setuid among them, of another.
func (c copier) copyEntry(from, to int, name, path string, st *unix.Stat_t) error {
	var err error
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		err = c.copySubdir(from, to, name, path, st)
	case unix.S_IFREG:
		err = c.copyFile(from, to, name, st)
	case unix.S_IFLNK:
		target := make([]byte, unix.PathMax)
		var n int
		if n, err = unix.Readlinkat(from, name, target); err == nil {
			err = c.as(func() error { return unix.Symlinkat(string(target[:n]), to, name) })
		}
	default:
		err = c.as(func() error { return unix.Mknodat(to, name, st.Mode, int(st.Rdev)) })
	}
	if err != nil {
		return fmt.Errorf("copy %q: %w", path, err)
	}
	if err := unix.Fchownat(to, name, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("set the owner of %q: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		if err := unix.Fchmodat(to, name, st.Mode&0o7777, 0); err != nil {
			return fmt.Errorf("set the mode of %q: %w", path, err)
		}
	}
	times := []unix.Timespec{st.Atim, st.Mtim}
	if err := unix.UtimesNanoAt(to, name, times, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("set the times of %q: %w", path, err)
	}
	return nil
}

func (c copier) copySubdir(from, to int, name, path string, st *unix.Stat_t) error {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	source, err := unix.Openat(from, name, flags, 0)
	if err != nil {
		return err
	}
	defer unix.Close(source)
	device := st.Dev
	if err := unix.Fstat(source, st); err != nil {
		return err
	}
	if err := c.as(func() error { return unix.Mkdirat(to, name, 0o700) }); err != nil {
		return err
	}
	target, err := unix.Openat(to, name, flags, 0)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	return c.copyDir(source, target, path, device)
}

func (c copier) copyFile(from, to int, name string, st *unix.Stat_t) error {
	source, err := openRegular(from, name, unix.OpenHow{Flags: unix.O_NOFOLLOW, Resolve: unix.RESOLVE_BENEATH}, st)
	if err != nil {
		return err
	}
	in := os.NewFile(uintptr(source), name)
	defer in.Close()
	var target int
	err = c.as(func() error {
		target, err = unix.Openat(to, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(target), name)
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}
