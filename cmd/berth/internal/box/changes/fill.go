package changes

import (
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/cmd/berth/internal/box/layer"
	"github.com/berth-runtime/berth/cmd/berth/internal/box/tarfile"
	"github.com/berth-runtime/berth/engine/container"
)

// Fill puts the changes of an archive into the scratch of a box, before anything of it is mounted.
func Fill(s *container.Scratch, in io.Reader) error {
	f := &filler{scratch: s, trees: make([]*layer.Tree, len(s.Layers)), made: map[string]bool{}}
	defer f.close()
	for i := range s.Layers {
		l := &s.Layers[i]
		fd, err := unix.Openat(s.FD, l.Upper, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: l.Path, Err: err}
		}
		t := layer.At(fd)
		t.Strict, t.Owners = true, os.Geteuid() == 0
		t.Upper = &layer.Upper{Attributes: "trusted.overlay.", Lower: l.Lower}
		if s.UserAttributes {
			t.Upper.Attributes = "user.overlay."
		}
		f.trees[i] = t
		for _, name := range l.Made {
			f.made[name] = true
		}
	}
	r := tarfile.NewReader(in)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return f.finish()
		}
		if err == nil {
			err = f.entry(h, r)
		}
		if err != nil {
			return err
		}
	}
}

type filler struct {
	scratch *container.Scratch
	trees   []*layer.Tree
	made    map[string]bool
}

// entry puts an entry into the layer that it lies in.
func (f *filler) entry(h *tarfile.Header, contents io.Reader) error {
	name := path.Clean("/" + h.Name)
	i := f.at(name)
	l := &f.scratch.Layers[i]
	deleted := strings.HasPrefix(path.Base(name), layer.Whiteout)
	if l.Fresh && (deleted || f.made[name]) {
		return nil // what is made there is made anew
	}
	inner := *h
	inner.Name = within(h.Name, l.Path)
	if h.Type == tarfile.HardLink {
		if f.at(path.Clean("/"+h.Link)) != i {
			return fmt.Errorf("%q is another name of %q, which is on another file system here", h.Name, h.Link)
		}
		inner.Link = within(h.Link, l.Path)
	}
	if err := f.trees[i].Entry(&inner, contents); err != nil {
		return fmt.Errorf("unpack %q: %w", h.Name, err)
	}
	return nil
}

// at finds the layer of a path: the innermost one, as they come in the order of mounts.
func (f *filler) at(name string) int {
	for i := len(f.scratch.Layers) - 1; i > 0; i-- {
		if dir := f.scratch.Layers[i].Path; name == dir || strings.HasPrefix(name, dir+"/") {
			return i
		}
	}
	return 0
}

// within is a name as the layer's directory has it. A name that leads elsewhere stays one, to be
// refused.
func within(name, dir string) string {
	if strings.Contains("/"+name+"/", "/../") {
		return name
	}
	return "./" + strings.TrimPrefix(path.Clean("/"+name), dir)
}

func (f *filler) finish() error {
	for _, t := range f.trees {
		if err := t.Finish(); err != nil {
			return err
		}
	}
	return nil
}

func (f *filler) close() {
	for _, t := range f.trees {
		if t != nil {
			t.Close()
		}
	}
}
