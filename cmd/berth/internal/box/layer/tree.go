package layer

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Names of the entries that delete something.
const (
	Whiteout = ".wh."
	Opaque   = ".wh..wh..opq"
)

// A Tree is a directory that layers are brought to.
type Tree struct {
	root int
	// Owners gives files the owners that the archive names, which takes root's rights.
	Owners bool
	// Strict refuses names that lead through a symbolic link. Without it links are followed, and
	// lead to what they do with the directory as root.
	Strict bool
	// Upper is for the upper directory of an overlay: its deletions are made of what the overlay
	// takes for one. Nil for a directory of its own.
	Upper *Upper
	// Literal keeps deletions as the empty files that the archive has for them.
	Literal bool
	// Skipped counts what was left out: device nodes and sockets.
	Skipped int
	// Most is how many entries all layers may have together, 0 for any number.
	Most int

	parent   int    // the directory that was resolved last, -1 for none
	at       string // its name
	modes    map[string]dirMode
	fresh    map[string]bool // what this layer has made
	replaced int             // to name files by that are about to replace others
	entries  int
}

// A dirMode is what a directory is to get in the end: until then we write to it.
type dirMode struct {
	mode uint32
	time time.Time
}

// Upper is what the upper directory of an overlay goes by.
type Upper struct {
	Attributes string // how its attributes begin: trusted.overlay. or user.overlay.
	Lower      string // the directory below, whose directories are merged with those of the Tree
}

// Open begins to bring layers to a directory. Close ends it.
func Open(dir string) (*Tree, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return At(fd), nil
}

// At is Open for a descriptor, which Close closes.
func At(fd int) *Tree {
	return &Tree{root: fd, parent: -1, modes: map[string]dirMode{}, fresh: map[string]bool{}}
}

// Close ends it. Without a call of Finish, directories have no modes of their own yet.
func (t *Tree) Close() {
	t.forget()
	unix.Close(t.root)
}

func (t *Tree) forget() {
	if t.parent >= 0 {
		unix.Close(t.parent)
	}
	t.parent, t.at = -1, ""
}

// clean is the name of an entry below the directory, "." for that itself.
func clean(name string) (string, error) {
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("%q leads out of the directory", name)
		}
	}
	return strings.TrimPrefix(path.Clean("/"+name), "/"), nil
}

func (t *Tree) resolve() uint64 {
	if t.Strict {
		return unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
	}
	return unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS
}

func (t *Tree) openat2(name string, flags uint64) (int, error) {
	if name == "" {
		name = "."
	}
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: t.resolve()}
	for {
		fd, err := unix.Openat2(t.root, name, &how)
		if err != unix.EINTR && err != unix.EAGAIN { // EAGAIN: something was renamed meanwhile
			return fd, err
		}
	}
}

// dir is the directory of a name, made with what leads there where it is missing.
func (t *Tree) dir(name string) (int, error) {
	if t.parent >= 0 && t.at == name {
		return t.parent, nil
	}
	t.forget()
	fd, err := t.openat2(name, unix.O_PATH|unix.O_DIRECTORY)
	if err == unix.ENOENT && name != "" {
		above, base := path.Split(name)
		var up int
		if up, err = t.dir(strings.TrimSuffix(above, "/")); err != nil {
			return -1, err
		}
		if err = unix.Mkdirat(up, base, 0o755); err == nil {
			err = t.likeLower(up, base, name)
		}
		if err == nil || err == unix.EEXIST {
			t.forget()
			fd, err = t.openat2(name, unix.O_PATH|unix.O_DIRECTORY)
		}
	}
	if err == unix.ELOOP && t.Strict {
		return -1, fmt.Errorf("/%s leads through a symbolic link", name)
	}
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: "/" + name, Err: err}
	}
	t.parent, t.at = fd, name
	return fd, nil
}

// likeLower gives a directory of an overlay, which none of the archive's entries is about, what it
// has below: an overlay shows the upper one's.
func (t *Tree) likeLower(up int, base, name string) error {
	var st unix.Stat_t
	if t.Upper == nil || unix.Lstat(path.Join(t.Upper.Lower, name), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	if t.Owners {
		if err := unix.Fchownat(up, base, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	t.modes[name] = dirMode{st.Mode & 0o7777, time.Unix(st.Mtim.Unix())}
	return nil
}

// remove deletes what a directory has by a name, with all below it, and tells whether there was
// something. What is mounted there is not entered.
func remove(dir int, name string) (bool, error) {
	switch err := unix.Unlinkat(dir, name, 0); err {
	case nil:
		return true, nil
	case unix.ENOENT:
		return false, nil
	case unix.EISDIR, unix.EPERM:
	default:
		return false, &os.PathError{Op: "delete", Path: name, Err: err}
	}
	if err := empty(dir, name, nil); err != nil {
		return false, err
	}
	if err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); err != nil {
		return false, &os.PathError{Op: "delete", Path: name, Err: err}
	}
	return true, nil
}

// empty deletes what a directory holds, except what is to be kept.
func empty(dir int, name string, keep func(string) bool) error {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(dir, name, &how)
	if err != nil {
		return &os.PathError{Op: "delete", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, n := range names {
		if keep != nil && keep(n) {
			continue
		}
		if _, err := remove(fd, n); err != nil {
			return err
		}
	}
	return nil
}

// Finish gives directories their modes and times.
func (t *Tree) Finish() error {
	t.forget()
	names := slices.Sorted(maps.Keys(t.modes))
	// Those inside come first: what has its mode may no longer lead there.
	slices.Reverse(names)
	for _, name := range names {
		want := t.modes[name]
		fd, err := t.openat2(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
		switch err {
		case nil:
		case unix.ENOENT, unix.ENOTDIR, unix.ELOOP: // a later layer has something else there
			continue
		default:
			return &os.PathError{Op: "open", Path: "/" + name, Err: err}
		}
		err = unix.Fchmod(fd, want.mode)
		stamp := unix.NsecToTimeval(want.time.UnixNano())
		err = errors.Join(err, unix.Futimes(fd, []unix.Timeval{stamp, stamp}))
		unix.Close(fd)
		if err != nil {
			return fmt.Errorf("set the mode and time of /%s: %w", name, err)
		}
	}
	t.modes = map[string]dirMode{}
	return nil
}
