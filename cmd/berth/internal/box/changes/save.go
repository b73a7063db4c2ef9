package changes

import (
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/cmd/berth/internal/box/layer"
	"github.com/berth-runtime/berth/cmd/berth/internal/box/tarfile"
	"github.com/berth-runtime/berth/cmd/berth/internal/cgrouptool"
	"github.com/berth-runtime/berth/engine/container"
)

// Save writes the changes as a layer. It returns how many were left out, which are sockets and
// devices.
func (s *Set) Save(scratch *container.Scratch, out io.Writer) (skipped int, err error) {
	w := tarfile.NewWriter(out)
	names := map[uint64]string{} // of files that have several, by inode
	if err := s.fits(scratch.FD); err != nil {
		return 0, err
	}
	for i := range s.List {
		c := &s.List[i]
		done, err := c.save(scratch.FD, w, names)
		if err != nil {
			return 0, fmt.Errorf("keep %s: %w", c.Path, err)
		}
		if !done {
			skipped++
		}
	}
	return skipped, w.Close()
}

// fits refuses files that hold more than the memory of the box did: they are sparse, and to write
// them out would fill any disk.
func (s *Set) fits(scratch int) error {
	var room unix.Statfs_t
	if err := unix.Fstatfs(scratch, &room); err != nil || room.Blocks == 0 {
		return err
	}
	left := uint64(room.Bsize) * room.Blocks
	for i := range s.List {
		c := &s.List[i]
		if c.Kind == Deleted || c.kind() != unix.S_IFREG {
			continue
		}
		if uint64(c.Size) > left {
			return fmt.Errorf("keep %s: it is sparse: of its %s no more than what the box had memory for can be data (remove it in the box)", c.Path, cgrouptool.Size(uint64(c.Size)))
		}
		left -= uint64(c.Size)
	}
	return nil
}

func (c *Change) save(scratch int, w *tarfile.Writer, names map[uint64]string) (bool, error) {
	name := strings.TrimPrefix(c.Path, "/")
	if c.Kind == Deleted {
		dir, base := path.Split(name)
		return true, w.Add(&tarfile.Header{Type: tarfile.File, Name: dir + layer.Whiteout + base, Mode: 0o600})
	}
	if strings.HasPrefix(path.Base(name), layer.Whiteout) {
		return false, nil // it would be taken for a deletion
	}
	st, err := lstat(scratch, c.upper)
	if err != nil {
		return false, err
	}
	h := &tarfile.Header{Name: name, Mode: c.Mode & 0o7777, UID: int(c.UID), GID: int(c.GID), Time: time.Unix(st.Mtim.Unix())}
	switch c.kind() {
	case unix.S_IFDIR:
		h.Type, h.Name = tarfile.Directory, name+"/"
		if h.Name == "/" {
			h.Name = "./"
		}
	case unix.S_IFLNK:
		h.Type, h.Link, h.Mode = tarfile.Symlink, c.Target, 0o777
	case unix.S_IFIFO:
		h.Type = tarfile.FIFO
	case unix.S_IFREG:
		if first, ok := names[st.Ino]; ok && st.Nlink > 1 {
			h.Type, h.Link = tarfile.HardLink, first
			return true, w.Add(h)
		}
		names[st.Ino] = name
		return true, c.saveFile(scratch, w, h)
	default:
		return false, nil
	}
	if c.kind() == unix.S_IFDIR {
		fd, err := seize(scratch, c.upper, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return false, err
		}
		h.Xattrs = xattrs(fd)
		unix.Close(fd)
	}
	return true, w.Add(h)
}

func (c *Change) saveFile(scratch int, w *tarfile.Writer, h *tarfile.Header) error {
	fd, err := seize(scratch, c.upper, unix.O_RDONLY)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), c.Path)
	defer f.Close()
	h.Type, h.Size, h.Xattrs = tarfile.File, c.Size, xattrs(fd)
	if err := w.Add(h); err != nil {
		return err
	}
	_, err = io.CopyN(w, f, c.Size)
	return err
}
