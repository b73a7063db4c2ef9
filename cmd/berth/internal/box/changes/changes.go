package changes

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"
)

// Kinds of changes.
const (
	Added    = 'A'
	Modified = 'M'
	Deleted  = 'D'
)

// A Change is what has become of one path.
type Change struct {
	Kind byte
	Path string // in the box
	State
	// Was is what a Modified one was before, nil for others.
	Was *State
	// Gained are extended attributes that it has and had not, or had otherwise: capabilities, ACLs.
	Gained []string
	// Link is of which file it becomes another name.
	Link string
	// upper is where the Scratch has it.
	upper string
}

// State is what a path is: of a Deleted one, what it was.
type State struct {
	Mode     uint32 // with its type
	UID, GID uint32
	Size     int64  // of a file
	Target   string // of a symbolic link
}

// A Set is what a box has changed, in the order of the paths.
type Set struct {
	List []Change
	// Unknown are directories that could not be looked at.
	Unknown []string
}

// Count tells how many changes are of a kind.
func (s *Set) Count(kind byte) (n int) {
	for i := range s.List {
		if s.List[i].Kind == kind {
			n++
		}
	}
	return n
}

// Bytes is the size of all files that were added or modified.
func (s *Set) Bytes() (n int64) {
	for i := range s.List {
		if s.List[i].Kind != Deleted {
			n += s.List[i].Size
		}
	}
	return n
}

func (s *Set) sort() {
	slices.SortFunc(s.List, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
}

func (s State) kind() uint32 { return s.Mode & unix.S_IFMT }

// Type is what a path is, in a word.
func (s State) Type() string {
	switch s.kind() {
	case unix.S_IFREG:
		return "file"
	case unix.S_IFDIR:
		return "directory"
	case unix.S_IFLNK:
		return "link"
	case unix.S_IFIFO:
		return "fifo"
	case unix.S_IFSOCK:
		return "socket"
	}
	return "device"
}

func stateOf(st *unix.Stat_t) State {
	s := State{Mode: st.Mode, UID: st.Uid, GID: st.Gid}
	if s.kind() == unix.S_IFREG {
		s.Size = st.Size
	}
	return s
}
