package container

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/compile"
)

// A Scratch is the memory that takes what a container writes to a root whose writes are
// discarded. CreateOptions.Scratch is given it before anything of it is mounted, and owns it: it
// stays there for as long as its descriptor is open.
type Scratch struct {
	FD     int
	Layers []ScratchLayer
	// UserAttributes is set where the overlays' own attributes are user.overlay., as in a user
	// namespace, instead of trusted.overlay.
	UserAttributes bool
}

// A ScratchLayer is a directory of it.
type ScratchLayer struct {
	Upper string // the directory in the Scratch
	Path  string // where it is in the container
	Lower string // what it is laid over, on the host
	// Fresh layers hide what is below them: they have nothing but what was made in them.
	Fresh bool
	// Made are the entries of a Fresh one that stand for the host's.
	Made []string
}

// Close lets go of the memory.
func (s *Scratch) Close() error { return unix.Close(s.FD) }

// handScratch lets the caller have the memory for what is written.
func (m *maker) handScratch(fd int) error {
	if m.o.Scratch == nil || fd < 0 {
		return errors.New("the container's init hands over its memory for writes, which was not asked for")
	}
	// It is ours to write to, by names that are ours: it must be no directory of the host's.
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return os.NewSyscallError("fstatfs", err)
	}
	if fs.Type != unix.TMPFS_MAGIC {
		return fmt.Errorf("the container's init hands over a file system of type %#x as its memory for writes", fs.Type)
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("keep what the container writes: %w", err)
	}
	s := &Scratch{FD: own, UserAttributes: m.plan.Namespace("user") != nil}
	for i, l := range m.spawn.Facts.Layers {
		switch {
		case l.Kind == compile.Merged && !l.Readonly, l.Kind == compile.Fresh:
			s.Layers = append(s.Layers, ScratchLayer{Upper: compile.Upper(i), Path: l.Path, Lower: l.Lower, Fresh: l.Kind == compile.Fresh})
		}
	}
	if len(s.Layers) > 0 && s.Layers[0].Fresh {
		for _, l := range m.spawn.Facts.Layers[1:] {
			s.Layers[0].Made = append(s.Layers[0].Made, l.Path)
		}
	}
	return m.o.Scratch(s)
}
