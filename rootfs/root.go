package rootfs

import (
	"os"
	"path"
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

// Open opens a regular file for reading. Anything else is refused: opening a
// device or a fifo may have effects, or wait for ever.
func (r *Root) Open(name string) (*os.File, error) {
	fd, err := r.openat2(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return nil, &os.PathError{Op: "open", Path: name, Err: unix.EINVAL}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (r *Root) openat2(name string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	inside := strings.TrimLeft(path.Clean("/"+name), "/")
	if inside == "" {
		inside = "."
	}
	// EAGAIN says that a rename or a mount elsewhere crossed a ".." on the way.
	// Who is answered so this often is being raced against.
	const tries = 1000
	for range tries {
		fd, err := unix.Openat2(r.fd, inside, &how)
		if err == nil {
			return fd, nil
		}
		if err != unix.EAGAIN && err != unix.EINTR {
			return -1, &os.PathError{Op: "open", Path: name, Err: err}
		}
	}
	return -1, &os.PathError{Op: "open", Path: name, Err: unix.EAGAIN}
}
