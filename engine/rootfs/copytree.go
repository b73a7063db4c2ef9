package rootfs

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// ErrTooLarge is returned by CopyTree for a tree that takes more memory than it may.
var ErrTooLarge = errors.New("it takes more memory")

// CopyTree copies what a directory holds into another one, with owners, modes
// and times, links and devices as such. Both are descriptors; no link is
// followed, so a tree that changes meanwhile can't lead the copy elsewhere. The
// source is on one file system: what is mounted below it is not copied. Holes stay
// holes. Where most is not 0, the copy takes no more memory than that, as it goes to a
// tmpfs.
func CopyTree(from, to int, most int64) error {
	var st, into unix.Stat_t
	if err := unix.Fstat(from, &st); err != nil {
		return err
	}
	if err := unix.Fstat(to, &into); err != nil {
		return err
	}
	if most == 0 {
		most = math.MaxInt64
	}
	c := &copier{int(into.Uid), int(into.Gid), most}
	return c.copyDir(from, to, "", st.Dev)
}

// copier is the user that creates the new files: the owner of the directory that they go
// into. A file system of a user namespace takes none by ids that it does not map,
// which those of the host's root are (EOVERFLOW).
type copier struct {
	uid, gid int
	left     int64 // of the memory that the copy may take
}

// take accounts for memory that is about to be taken.
func (c *copier) take(n int64) error {
	if n > c.left {
		return ErrTooLarge
	}
	c.left -= n
	return nil
}

// as makes something as that owner. Ids for file systems are a thread's own;
// other rights come back with the id.
func (c *copier) as(make func() error) error {
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

func (c *copier) copyDir(from, to int, where string, device uint64) error {
	if len(where) >= unix.PathMax {
		// No program can name what is there, and who made it was after our memory.
		return fmt.Errorf("copy %q…: %w", where[:64], unix.ENAMETOOLONG)
	}
	fd, err := unix.Openat(from, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("list %q: %w", where, err)
	}
	list := os.NewFile(uintptr(fd), "directory")
	defer list.Close()
	for {
		const some = 1000 // of a directory that may hold millions
		names, err := list.Readdirnames(some)
		if err == io.EOF {
			return nil
		}
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
			const inode = 1 << 10 // what the kernel takes for one and its name, about
			if err := c.take(inode); err != nil {
				return fmt.Errorf("copy %q: %w", path, err)
			}
			if err := c.copyEntry(from, to, name, path, &st); err != nil {
				return err
			}
		}
	}
}

// copyEntry copies what is there by now: st, which was looked at before, becomes that
// of the file or directory that was opened. Otherwise a file that is put in its place
// would be copied with the owner and the mode, setuid among them, of the first.
func (c *copier) copyEntry(from, to int, name, path string, st *unix.Stat_t) error {
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

func (c *copier) copySubdir(from, to int, name, path string, st *unix.Stat_t) error {
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

func (c *copier) copyFile(from, to int, name string, st *unix.Stat_t) error {
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
	if err := c.copyData(in, out, st.Size); err != nil {
		return err
	}
	return out.Close()
}

// copyData copies so much of a file, but for its holes: a page of a tmpfs is memory
// whatever is in it.
func (c *copier) copyData(in, out *os.File, size int64) error {
	for at := int64(0); at < size; {
		data, end, err := nextData(int(in.Fd()), at, size)
		if err != nil {
			return err
		}
		if data == size {
			break
		}
		if err := c.take(pages(end - data)); err != nil {
			return err
		}
		if _, err := in.Seek(data, io.SeekStart); err != nil {
			return err
		}
		if _, err := out.Seek(data, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(out, in, end-data); err == io.EOF {
			break // it has become shorter meanwhile
		} else if err != nil {
			return err
		}
		at = end
	}
	return out.Truncate(size)
}

// nextData finds what is not a hole from a place on: where it begins and ends, or the
// size twice. File systems that know nothing of holes say that all is data
// (lseek(2)), or EINVAL; one in user space may say anything.
func nextData(fd int, at, size int64) (data, end int64, err error) {
	data, err = unix.Seek(fd, at, unix.SEEK_DATA)
	switch {
	case err == unix.ENXIO:
		return size, size, nil
	case err == unix.EINVAL || err == nil && data < at:
		return at, size, nil
	case err != nil:
		return 0, 0, os.NewSyscallError("lseek", err)
	case data >= size:
		return size, size, nil
	}
	end, err = unix.Seek(fd, data, unix.SEEK_HOLE)
	if err != nil || end <= data || end > size {
		end = size
	}
	return data, end, nil
}

// pages is how much memory so much of a file takes.
func pages(n int64) int64 {
	page := int64(os.Getpagesize())
	return (n + page - 1) / page * page
}
