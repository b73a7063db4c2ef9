package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// mostLinks is the kernel's own limit for one path (path_resolution(7)).
const mostLinks = 40

// Make makes a directory or an empty file where the name has nothing, and the directories
// above it, which all belong to the given user and group. Links are followed inside the
// root, and one that dangles has made what it leads to.
func (r *Root) Make(name string, dir bool, uid, gid uint32) error {
	for range mostLinks {
		fd, err := r.look(name)
		if err == nil {
			return unix.Close(fd)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		above, base := path.Split(path.Clean("/" + name))
		if err := r.Make(above, true, uid, gid); err != nil {
			return err
		}
		link, err := r.makeOne(above, base, dir, uid, gid)
		if err == nil && link == "" {
			return nil
		}
		if err != nil {
			return &os.PathError{Op: "make", Path: name, Err: err}
		}
		if !path.IsAbs(link) {
			link = above + link
		}
		name = link
	}
	return &os.PathError{Op: "make", Path: name, Err: unix.ELOOP}
}

// makeOne makes the last part of a path, or says where the link leads that is there.
func (r *Root) makeOne(above, base string, dir bool, uid, gid uint32) (link string, err error) {
	parent, err := openat2(r.fd, inside(above), &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: inRoot})
	if err != nil {
		return "", err
	}
	defer unix.Close(parent)
	mode := uint32(0o644)
	if dir {
		mode = 0o755
		err = unix.Mkdirat(parent, base, mode)
	} else {
		err = unix.Mknodat(parent, base, unix.S_IFREG|mode, 0)
	}
	if err == unix.EEXIST {
		var buf [unix.PathMax]byte
		n, err := unix.Readlinkat(parent, base, buf[:])
		return string(buf[:max(n, 0)]), err
	}
	if err != nil {
		return "", err
	}
	made, err := unix.Openat(parent, base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(made)
	var st unix.Stat_t
	if err := unix.Fstat(made, &st); err != nil {
		return "", err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return "", unix.ELOOP // another process has put it in place of what was created
	}
	if err := unix.Fchownat(made, "", int(uid), int(gid), unix.AT_EMPTY_PATH); err != nil {
		return "", err
	}
	// The umask is our caller's, and O_PATH takes no fchmod.
	return "", unix.Chmod("/proc/self/fd/"+strconv.Itoa(made), mode)
}
