package container

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/launch"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/internal/start/entry"
	"golang.org/x/sys/unix"
)

// A spawn is how a child is cloned, with the facts that its Program is compiled from.
type spawn struct {
	launch.Spawn
	Facts compile.Facts
	// Gate is the listening socket that the child waits at, and Root a directory to
	// change to; -1 for none.
	Gate, Root int
	// Group is the directory of a group of version 2 that the child goes on in by a clone of
	// itself, "" for none: see enterLate.
	Group string
	group int // it, open
	// Joins are the namespaces to enter, by our descriptors of them.
	Joins []compile.Join
	// Mounts are detached mounts by index of the Plan's mounts.
	Mounts map[int]int
	// Nodes are mounts of the nodes of Facts.Devices.
	Nodes []int
}

// start clones the child. It may be called again where it has failed.
func (s *spawn) start(compiled func(*compile.Facts) (*program.Program, error)) (*launch.Child, error) {
	if s.Group != "" {
		fd, err := unix.Open(s.Group, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("open the cgroup %s: %w", s.Group, err)
		}
		defer unix.Close(fd)
		s.group = fd
	}
	s.inherit()
	s.Program = func(n *launch.Numbers) (*program.Program, error) {
		s.number(n)
		return compiled(&s.Facts)
	}
	return s.Spawn.Start()
}

// foresee compiles what start would load, and starts nothing.
func (s *spawn) foresee(compiled func(*compile.Facts) (*program.Program, error)) (*program.Program, error) {
	s.inherit()
	s.number(s.Numbers())
	return compiled(&s.Facts)
}

// inherit lists the descriptors that the child gets, and what it inherits besides.
func (s *spawn) inherit() {
	s.Inherited = s.Inherited[:0]
	s.each(func(fd int, _ *int) { s.Inherited = append(s.Inherited, fd) })
	s.Forks = 0
	for _, forks := range [...]bool{s.Group != "", s.Facts.Fork} {
		if forks {
			s.Forks++
		}
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil {
		s.Facts.OpenFiles = limit.Max
	}
	s.Facts.TimerSlack = entry.Slack()
	s.Facts.Stamps = s.Trace.On()
}

// number tells the Program the numbers of its descriptors.
func (s *spawn) number(n *launch.Numbers) {
	s.Facts.Report, s.Facts.Life, s.Facts.Gate, s.Facts.Group = n.Report, n.Life, -1, 0
	i := 0
	s.each(func(_ int, number *int) { *number = n.Inherited[i]; i++ })
}

// each goes through the descriptors for the Program, with where their numbers go.
func (s *spawn) each(do func(fd int, number *int)) {
	if s.Gate >= 0 {
		do(s.Gate, &s.Facts.Gate)
	}
	if s.Facts.Joins == nil {
		s.Facts.Joins = slices.Clone(s.Joins)
	}
	for i, j := range s.Joins {
		do(j.FD, &s.Facts.Joins[i].FD)
	}
	for _, i := range slices.Sorted(maps.Keys(s.Mounts)) {
		do(s.Mounts[i], &s.Facts.Sources[i].FD)
	}
	for i, fd := range s.Nodes {
		do(fd, &s.Facts.Devices[i].FD)
	}
	if s.Root >= 0 {
		do(s.Root, &s.Facts.RootFD)
	}
	if s.Group != "" {
		do(s.group, &s.Facts.Group)
	}
	if s.Facts.NoMountSetattr {
		do(int(s.Stdio[0]), &s.Facts.Spare) // whatever; it is there to be replaced
	}
}
