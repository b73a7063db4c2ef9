package rootfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Root is a handle of a directory that nothing opened through it leaves.
type Root struct{ fd int }

// Open opens a directory as a Root.
func Open(dir string) (*Root, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return &Root{fd: fd}, nil
}

// Close closes the handle.
func (r *Root) Close() error { return unix.Close(r.fd) }

// ErrNotRegular is returned for what is to be read and is not a regular file: opening a
// device or a fifo may have effects, or wait for ever.
var ErrNotRegular = errors.New("it is not a regular file")

// A File is a regular file of strangers that is read no further than it was long when
// it was opened. Files of procfs and its like have no length, and are as empty as they
// say: to read one may wait for ever, or take from others what is to be read once
// (/proc/kmsg, trace_pipe).
type File struct {
	io.LimitedReader
	name string
}

// Name is the path by which it was opened.
func (f *File) Name() string { return f.name }

// Tail reads its end, up to a number of bytes.
func (f *File) Tail(most int64) ([]byte, error) {
	size := min(f.N, most)
	return io.ReadAll(io.NewSectionReader(f.R.(*os.File), f.N-size, size))
}

// Close closes it.
func (f *File) Close() error { return f.R.(*os.File).Close() }

// OpenFile opens a regular file for reading, by a path of the caller's.
func OpenFile(name string) (*File, error) {
	return openFile(unix.AT_FDCWD, name, name, 0)
}

// ReadAt reads a regular file of a directory that others may write to: no link is followed, and
// more than a number of bytes is an error.
func ReadAt(dir int, name string, most int64) ([]byte, error) {
	f, err := openFile(dir, name, name, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.N > most {
		return nil, fmt.Errorf("%s has %d bytes, and %d is the most that is read", name, f.N, most)
	}
	return io.ReadAll(f)
}

// Open opens a regular file for reading.
func (r *Root) Open(name string) (*File, error) {
	return openFile(r.fd, inside(name), name, inRoot)
}

func openFile(dir int, path, name string, resolve uint64) (*File, error) {
	var st unix.Stat_t
	fd, err := openRegular(dir, path, unix.OpenHow{Resolve: resolve}, &st)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return &File{io.LimitedReader{R: os.NewFile(uintptr(fd), name), N: st.Size}, name}, nil
}

// look gives a descriptor of whatever has the name, without opening it.
func (r *Root) look(name string) (int, error) {
	fd, err := openat2(r.fd, inside(name), &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: inRoot})
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

const inRoot = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS

// inside makes a path of the root relative to it.
func inside(name string) string {
	if name = strings.TrimLeft(path.Clean("/"+name), "/"); name != "" {
		return name
	}
	return "."
}

// openRegular opens a regular file for reading, and nothing else, not even for an
// instant: an image may have a device by any name. So it is looked at by a descriptor
// that opens nothing, and that one is opened again.
func openRegular(dir int, name string, how unix.OpenHow, st *unix.Stat_t) (int, error) {
	how.Flags |= unix.O_PATH | unix.O_CLOEXEC
	found, err := openat2(dir, name, &how)
	if err != nil {
		return -1, err
	}
	defer unix.Close(found)
	if err := unix.Fstat(found, st); err != nil {
		return -1, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return -1, ErrNotRegular
	}
	return Reopen(found)
}

// Reopen opens for reading what a descriptor was opened by that opens nothing. It does
// not wait: the owner of a file can have a lease on it, which holds an open up for
// /proc/sys/fs/lease-break-time, 45 s (fcntl(2)).
func Reopen(fd int) (int, error) {
	opened, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == unix.EWOULDBLOCK {
		err = ErrLeased
	}
	return opened, err
}

// ErrLeased is returned for a file that a process has a lease on.
var ErrLeased = errors.New("some process has a lease on it (fcntl(2), F_SETLEASE)")

func openat2(dir int, name string, how *unix.OpenHow) (int, error) {
	// EAGAIN says that a rename or a mount elsewhere crossed a ".." on the way.
	// Who is answered so this often is being raced against.
	const tries = 1000
	for range tries {
		fd, err := unix.Openat2(dir, name, how)
		if err != unix.EAGAIN && err != unix.EINTR {
			return fd, err
		}
	}
	return -1, unix.EAGAIN
}
