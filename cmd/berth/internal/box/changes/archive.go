package changes

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/cmd/berth/internal/box/layer"
	"github.com/berth-runtime/berth/cmd/berth/internal/box/tarfile"
)

// OfArchive tells what a layer would change of a directory.
func OfArchive(in io.Reader, root string) (*Set, error) {
	set := &Set{}
	r := tarfile.NewReader(in)
	for {
		h, err := r.Next()
		if err == io.EOF {
			set.sort()
			return set, nil
		}
		if err != nil {
			return nil, err
		}
		if strings.Contains("/"+h.Name+"/", "/../") {
			return nil, fmt.Errorf("%q leads out of the directory", h.Name)
		}
		if err := set.archived(h, r, root); err != nil {
			return nil, fmt.Errorf("compare %q: %w", h.Name, err)
		}
	}
}

func (s *Set) archived(h *tarfile.Header, contents io.Reader, root string) error {
	name := path.Clean("/" + h.Name)
	dir, base := path.Split(name)
	deleted, isDeletion := strings.CutPrefix(base, layer.Whiteout)
	if base == layer.Opaque {
		name, isDeletion = path.Clean(dir), true
	} else if isDeletion {
		name = path.Join(dir, deleted)
	}
	var st unix.Stat_t
	err := unix.Lstat(filepath.Join(root, name), &st)
	exists := err == nil
	if err != nil && err != unix.ENOENT && err != unix.ENOTDIR {
		return err
	}
	if isDeletion {
		if exists {
			s.List = append(s.List, Change{Kind: Deleted, Path: name, State: stateOf(&st)})
		}
		return nil
	}
	c := Change{Kind: Added, Path: name, State: stateIn(h)}
	if h.Type == tarfile.HardLink {
		c.Link, c.State = path.Clean("/"+h.Link), s.linked(root, h)
	}
	were := attributesAt(filepath.Join(root, name), &st, exists)
	c.Gained = gained(h.Xattrs, were)
	if !exists {
		s.List = append(s.List, c)
		return nil
	}
	was := stateOf(&st)
	if was.kind() == unix.S_IFLNK {
		was.Target, _ = os.Readlink(filepath.Join(root, name))
	}
	if was != c.State || h.Type == tarfile.HardLink || len(c.Gained) > 0 || lost(h.Xattrs, were) || h.Type == tarfile.File && !holds(filepath.Join(root, name), contents) {
		c.Kind, c.Was = Modified, &was
		s.List = append(s.List, c)
	}
	return nil
}

// linked is what a file is that an entry gives another name. What the entry says of it goes for
// nothing.
func (s *Set) linked(root string, h *tarfile.Header) State {
	name := path.Clean("/" + h.Link)
	for i := range slices.Backward(s.List) {
		if c := &s.List[i]; c.Path == name && c.Kind != Deleted {
			return c.State
		}
	}
	var st unix.Stat_t
	if unix.Lstat(filepath.Join(root, name), &st) != nil {
		return stateIn(h)
	}
	return stateOf(&st)
}

func stateIn(h *tarfile.Header) State {
	s := State{Mode: h.Mode, UID: uint32(h.UID), GID: uint32(h.GID)}
	if os.Geteuid() != 0 {
		s.UID, s.GID = uint32(os.Geteuid()), uint32(os.Getegid()) // as they will be
	}
	switch h.Type {
	case tarfile.Directory:
		s.Mode |= unix.S_IFDIR
	case tarfile.Symlink:
		s.Mode, s.Target = unix.S_IFLNK|0o777, h.Link
	case tarfile.FIFO:
		s.Mode |= unix.S_IFIFO
	case tarfile.Char:
		s.Mode |= unix.S_IFCHR
	case tarfile.Block:
		s.Mode |= unix.S_IFBLK
	default:
		s.Mode |= unix.S_IFREG
		s.Size = h.Size
	}
	return s
}

// holds reports whether a file has just these contents.
func holds(name string, contents io.Reader) bool {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return equal(f, contents)
}

func equal(a, b io.Reader) bool {
	const some = 64 << 10
	x, y := make([]byte, some), make([]byte, some)
	for {
		n, err := io.ReadFull(a, x)
		m, other := io.ReadFull(b, y)
		if n != m || !bytes.Equal(x[:n], y[:m]) {
			return false
		}
		if err != nil || other != nil {
			return err == other
		}
	}
}
