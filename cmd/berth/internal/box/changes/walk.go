package changes

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/container"
)

// Of compares what a box has written with what is below. Made are the paths that Paths has found
// before its command began: mount points.
func Of(s *container.Scratch, made map[string]bool) (*Set, error) {
	w := &walker{scratch: s, made: made, opaque: "trusted.overlay.opaque", set: &Set{}}
	if s.UserAttributes {
		w.opaque = "user.overlay.opaque"
	}
	for i := range s.Layers {
		l := &s.Layers[i]
		w.fresh = l.Fresh
		if err := w.layer(l); err != nil {
			return nil, err
		}
	}
	w.set.sort()
	return w.set, nil
}

// Paths are all that the scratch has now.
func Paths(s *container.Scratch) (map[string]bool, error) {
	found := map[string]bool{}
	for i := range s.Layers {
		l := &s.Layers[i]
		var walk func(upper, name string) error
		walk = func(upper, name string) error {
			fd, err := open(s.FD, upper, unix.O_RDONLY|unix.O_DIRECTORY)
			if errors.Is(err, unix.EACCES) {
				return nil // what is there, the archive has made: nothing is mounted in it
			}
			if err != nil {
				return err
			}
			entries, err := entriesOf(fd, upper)
			unix.Close(fd)
			if errors.Is(err, unix.EACCES) {
				return nil
			}
			if err != nil {
				return err
			}
			for _, e := range entries {
				inner := path.Join(name, e.name)
				found[inner] = true
				if e.st.Mode&unix.S_IFMT == unix.S_IFDIR {
					if err := walk(path.Join(upper, e.name), inner); err != nil {
						return err
					}
				}
			}
			return nil
		}
		if err := walk(l.Upper, l.Path); err != nil {
			return nil, err
		}
	}
	return found, nil
}

type walker struct {
	scratch *container.Scratch
	made    map[string]bool
	opaque  string // the name of an attribute
	fresh   bool   // the layer that is being walked hides what is below
	set     *Set
}

func (w *walker) layer(l *container.ScratchLayer) error {
	if l.Fresh {
		for _, name := range l.Made {
			if _, err := lstat(w.scratch.FD, path.Join(l.Upper, name)); err == unix.ENOENT {
				w.deleted(name, filepath.Join(l.Lower, name))
				delete(w.made, name)
			}
		}
	}
	// Its owner is not told: one that a user namespace does not know is left as another's.
	var st, below unix.Stat_t
	if err := unix.Fstatat(w.scratch.FD, l.Upper, &st, 0); err != nil {
		return err
	}
	if err := unix.Stat(l.Lower, &below); err == nil && below.Mode != st.Mode && !l.Fresh {
		was := stateOf(&below)
		now := was
		now.Mode = st.Mode
		w.set.List = append(w.set.List, Change{Kind: Modified, Path: l.Path, State: now, Was: &was, upper: l.Upper})
	}
	return w.dir(l.Upper, l.Path, l.Lower, false)
}

// An entry is what a directory has.
type entry struct {
	name string
	st   unix.Stat_t
}

// dir looks at a directory. lower is what it is merged with, "" for nothing; hidden says that what
// that has, and the directory has not, is gone.
func (w *walker) dir(upper, name, lower string, hidden bool) error {
	entries, fd, err := list(w.scratch.FD, upper)
	if err != nil {
		return err
	}
	var value [8]byte
	if n, err := unix.Fgetxattr(fd, w.opaque, value[:]); err == nil && n == 1 && value[0] == 'y' {
		hidden = true
	}
	unix.Close(fd)
	for i := range entries {
		if err := w.entry(upper, name, lower, hidden, &entries[i]); err != nil {
			return err
		}
	}
	if !hidden || lower == "" {
		return nil
	}
	old, err := os.ReadDir(lower)
	if err != nil {
		w.set.Unknown = append(w.set.Unknown, name)
		return nil
	}
	for _, e := range old {
		if !slices.ContainsFunc(entries, func(now entry) bool { return now.name == e.Name() }) {
			w.deleted(path.Join(name, e.Name()), filepath.Join(lower, e.Name()))
		}
	}
	return nil
}

func (w *walker) entry(upper, dir, lower string, hidden bool, e *entry) error {
	name := path.Join(dir, e.name)
	now := Change{Kind: Added, Path: name, State: stateOf(&e.st), upper: path.Join(upper, e.name)}
	if now.kind() == unix.S_IFLNK {
		now.Target = readLink(w.scratch.FD, now.upper)
	}
	below := ""
	var old unix.Stat_t
	if lower != "" {
		below = filepath.Join(lower, e.name)
		switch err := unix.Lstat(below, &old); err {
		case nil:
		case unix.ENOENT, unix.ENOTDIR:
			below = ""
		default:
			return &fs.PathError{Op: "lstat", Path: below, Err: err}
		}
	}
	isDir := now.kind() == unix.S_IFDIR
	switch {
	case now.kind() == unix.S_IFCHR && e.st.Rdev == 0: // an overlay's word for a deletion
		if below != "" {
			w.deleted(name, below)
		}
		return nil
	case w.made[name] && (below == "" || w.fresh):
		// A mount point, or what stands for the host's.
		if !isDir {
			return nil
		}
	case below == "":
		now.Gained = gained(w.attributes(&now), nil)
		w.set.List = append(w.set.List, now)
	default:
		has, had := w.attributes(&now), attributesAt(below, &old, true)
		now.Gained = gained(has, had)
		was := stateOf(&old)
		if was.kind() == unix.S_IFLNK {
			was.Target, _ = os.Readlink(below)
		}
		if was != now.State || len(now.Gained) > 0 || lost(has, had) || now.kind() == unix.S_IFREG && !w.same(now.upper, below) {
			now.Kind, now.Was = Modified, &was
			w.set.List = append(w.set.List, now)
		}
		if was.kind() != unix.S_IFDIR {
			below = ""
		}
	}
	if !isDir {
		return nil
	}
	return w.dir(now.upper, name, below, hidden)
}

// attributes are those of a file or directory of the scratch.
func (w *walker) attributes(c *Change) map[string]string {
	if kind := c.kind(); kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return nil
	}
	fd, err := seize(w.scratch.FD, c.upper, unix.O_RDONLY)
	if err != nil {
		return nil // what can't be read by now can't be kept either, of which save tells
	}
	defer unix.Close(fd)
	return xattrs(fd)
}

func (w *walker) deleted(name, lower string) {
	var st unix.Stat_t
	if unix.Lstat(lower, &st) != nil {
		return
	}
	c := Change{Kind: Deleted, Path: name, State: stateOf(&st)}
	if c.kind() == unix.S_IFLNK {
		c.Target, _ = os.Readlink(lower)
	}
	w.set.List = append(w.set.List, c)
}
