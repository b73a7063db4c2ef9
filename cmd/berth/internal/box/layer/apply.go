package layer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/cmd/berth/internal/box/tarfile"
)

// Apply brings a layer to the tree.
func (t *Tree) Apply(in io.Reader) error {
	clear(t.fresh)
	r := tarfile.NewReader(in)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := t.Entry(h, r); err != nil {
			return fmt.Errorf("unpack %q: %w", h.Name, err)
		}
	}
}

// Entry brings one entry of a layer to the tree.
func (t *Tree) Entry(h *tarfile.Header, contents io.Reader) error {
	if t.entries++; t.Most > 0 && t.entries > t.Most {
		return fmt.Errorf("there are more than %d entries", t.Most)
	}
	name, err := clean(h.Name)
	if err != nil {
		return err
	}
	if name == "" {
		if h.Type == tarfile.Directory {
			t.modes[""] = dirMode{h.Mode, h.Time}
		}
		return nil
	}
	above, base := path.Split(name)
	above = strings.TrimSuffix(above, "/")
	dir, err := t.dir(above)
	if err != nil {
		return err
	}
	switch deleted, ok := strings.CutPrefix(base, Whiteout); {
	case t.Literal:
	case base == Opaque:
		return t.hide(above)
	case ok && (deleted == "" || deleted == "." || deleted == ".."):
		return errors.New("it deletes nothing that has a name")
	case ok:
		if t.fresh[path.Join(above, deleted)] {
			return nil // it is about what was there before
		}
		return t.delete(dir, deleted)
	}
	for made := name; made != "." && !t.fresh[made]; made = path.Dir(made) {
		t.fresh[made] = true
	}
	if h.Type == tarfile.Directory {
		return t.directory(dir, base, name, h)
	}
	delete(t.modes, name)
	return t.replace(dir, base, h, contents)
}

func (t *Tree) delete(dir int, name string) error {
	_, err := remove(dir, name)
	if err == nil && t.Upper != nil {
		// A character device of this number says so to an overlay, and takes no rights to make.
		err = unix.Mknodat(dir, name, unix.S_IFCHR, 0)
	}
	return err
}

// hide deletes what a directory had before this layer.
func (t *Tree) hide(name string) error {
	if t.Upper != nil {
		fd, err := unix.Openat(t.parent, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.Fsetxattr(fd, t.Upper.Attributes+"opaque", []byte("y"), 0); err != nil {
			return os.NewSyscallError("fsetxattr", err)
		}
	}
	return empty(t.parent, ".", func(inner string) bool { return t.fresh[path.Join(name, inner)] })
}

// directory makes a directory, or keeps the one that is there.
func (t *Tree) directory(dir int, base, name string, h *tarfile.Header) error {
	err := unix.Mkdirat(dir, base, 0o700)
	if err == unix.EEXIST {
		var st unix.Stat_t
		if err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			err = nil
		} else if _, err = remove(dir, base); err == nil {
			err = unix.Mkdirat(dir, base, 0o700)
		}
	}
	if err == nil {
		err = t.own(dir, base, h)
	}
	if err == nil && len(h.Xattrs) > 0 {
		err = t.describe(dir, base, h)
	}
	t.modes[name] = dirMode{h.Mode, h.Time}
	return err
}

// replace makes what is no directory. Where there is something by the name it is replaced in one
// step, so that programs which use it find either.
func (t *Tree) replace(dir int, base string, h *tarfile.Header, contents io.Reader) error {
	err := t.make(dir, base, h, contents)
	if err != unix.EEXIST {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		if _, err := remove(dir, base); err != nil {
			return err
		}
		return t.make(dir, base, h, contents)
	}
	t.replaced++
	beside := ".berth-new-" + strconv.Itoa(os.Getpid()) + "-" + strconv.Itoa(t.replaced)
	if _, err := remove(dir, beside); err != nil {
		return err
	}
	if err := t.make(dir, beside, h, contents); err != nil {
		return err
	}
	err = unix.Renameat(dir, beside, dir, base)
	// Of two names of one file rename(2) leaves both.
	if _, gone := remove(dir, beside); err == nil {
		err = gone
	}
	return err
}

// make makes an entry that does not exist.
func (t *Tree) make(dir int, base string, h *tarfile.Header, contents io.Reader) (err error) {
	switch h.Type {
	case tarfile.File:
		return t.file(dir, base, h, contents)
	case tarfile.HardLink:
		return t.link(dir, base, h)
	case tarfile.Symlink:
		err = unix.Symlinkat(h.Link, dir, base)
	case tarfile.FIFO:
		err = unix.Mkfifoat(dir, base, 0o600)
	default:
		// A device node in a directory of the host's is a way to the device.
		t.Skipped++
		return nil
	}
	if err == nil {
		err = t.own(dir, base, h)
	}
	if err == nil && h.Type == tarfile.FIFO {
		err = chmodFIFO(dir, base, h.Mode)
	}
	if err != nil {
		return err
	}
	stamp := unix.NsecToTimespec(h.Time.UnixNano())
	return unix.UtimesNanoAt(dir, base, []unix.Timespec{stamp, stamp}, unix.AT_SYMLINK_NOFOLLOW)
}

// chmodFIFO gives a FIFO its mode. By the name alone it could be anything's by now: chmod(2)
// follows a link that its new owner may have put there.
func chmodFIFO(dir int, base string, mode uint32) error {
	fd, err := unix.Openat(dir, base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return errors.New("another process has put something else in its place")
	}
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}

func (t *Tree) file(dir int, base string, h *tarfile.Header, contents io.Reader) error {
	fd, err := unix.Openat(dir, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), base)
	_, err = io.Copy(f, contents)
	if err == nil && t.Owners {
		err = unix.Fchown(fd, h.UID, h.GID)
	}
	if err == nil {
		err = setXattrs(fd, h.Xattrs)
	}
	if err == nil {
		err = unix.Fchmod(fd, h.Mode) // after the owner, which takes setuid off
	}
	if err == nil {
		stamp := unix.NsecToTimeval(h.Time.UnixNano())
		err = unix.Futimes(fd, []unix.Timeval{stamp, stamp})
	}
	return errors.Join(err, f.Close())
}

// link makes another name of a file of the tree.
func (t *Tree) link(dir int, base string, h *tarfile.Header) error {
	name, err := clean(h.Link)
	if err != nil {
		return err
	}
	above, old := path.Split(name)
	from, err := t.openat2(strings.TrimSuffix(above, "/"), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("link to %q: %w", h.Link, err)
	}
	defer unix.Close(from)
	if err := unix.Linkat(from, old, dir, base, 0); err == unix.EEXIST {
		return err
	} else if err != nil {
		return fmt.Errorf("link to %q: %w", h.Link, err)
	}
	return nil
}

func (t *Tree) own(dir int, base string, h *tarfile.Header) error {
	if !t.Owners {
		return nil
	}
	return unix.Fchownat(dir, base, h.UID, h.GID, unix.AT_SYMLINK_NOFOLLOW)
}

func (t *Tree) describe(dir int, base string, h *tarfile.Header) error {
	fd, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return setXattrs(fd, h.Xattrs)
}

// setXattrs keeps what programs go by. What belongs to an overlay would hide files of it, and a
// label is for another machine's policy.
func setXattrs(fd int, list map[string]string) error {
	for name, value := range list {
		if !Carried(name) {
			continue
		}
		err := unix.Fsetxattr(fd, name, []byte(value), 0)
		if err != nil && err != unix.EPERM && err != unix.EOPNOTSUPP {
			return fmt.Errorf("set the attribute %s: %w", name, err)
		}
	}
	return nil
}

// Carried reports whether an extended attribute goes with a file to another place.
func Carried(name string) bool {
	return name == "security.capability" || strings.HasPrefix(name, "system.posix_acl_") ||
		strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.")
}
