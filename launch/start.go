package launch

import (
	"errors"
	"fmt"

	"github.com/berth-runtime/berth/compile"
	"github.com/berth-runtime/berth/internal/entry"
	"github.com/berth-runtime/berth/internal/trace"
	"github.com/berth-runtime/berth/program"
	"golang.org/x/sys/unix"
)

// A Spawn says how a child is cloned.
type Spawn struct {
	// Program is compiled once the numbers of the descriptors are known.
	Program func(f *compile.Facts) (*program.Program, error)
	Facts   compile.Facts

	// Stdio are the child's first three descriptors, Preserved those from 3 on.
	Stdio     [3]uintptr
	Preserved []uintptr
	// Gate is the listening socket that the child waits at, or -1.
	Gate int
	// Minded gives the child a process that minds the others of its pid namespace.
	Minded bool
	// Joins are namespaces to enter: Facts.Joins gets their numbers in the child.
	Joins []compile.Join
	// Mounts are detached mounts by index of the Plan's mounts.
	Mounts map[int]int
	// Root is a root directory to change to, or -1.
	Root int

	CloneFlags uintptr
	// Trace is told what takes how long; nil for nobody.
	Trace *trace.Trace
	// Cgroup is a directory of the unified hierarchy to clone the child into, or -1.
	Cgroup int
}

// A Child is a process that runs a Program.
type Child struct {
	Pid   int
	PidFD int
	// Usage is what it has used, with the children that it has waited for, once Wait
	// has returned.
	Usage   unix.Rusage
	report  int
	minder  *minder
	explain func(program.Failure) error
	// name is what the kernel calls the process until it executes its program.
	name string
	// forks is set until the news of a fork has come.
	forks bool
	image file // what it executes
	// stamps reads the message by which a traced Program tells of its calls.
	stamps *stamps
}

// Start clones the child. It runs at once; Serve must follow.
func (s *Spawn) Start() (*Child, error) {
	sockets, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make the socket to the container's init: %w", err)
	}
	ours, theirs := sockets[0], sockets[1]
	defer unix.Close(theirs)
	minder, err := s.newMinder()
	if err != nil {
		unix.Close(ours)
		return nil, err
	}
	defer minder.started()
	files := s.assign(theirs, minder.theirs)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil {
		s.Facts.OpenFiles = limit.Max
	}
	s.Facts.TimerSlack = entry.Slack()
	s.Facts.Stamps = s.Trace.On()
	compiling := s.Trace.Begin("compile the Program")
	p, err := s.Program(&s.Facts)
	compiling.End()
	if err != nil {
		unix.Close(ours)
		return nil, err
	}
	loading := s.Trace.Begin("load it into a memfd")
	image, err := load(p)
	loading.End()
	if err != nil {
		unix.Close(ours)
		return nil, err
	}
	defer unix.Close(image)
	// /proc/self resolves for the child as well: this procfs belongs to our pid
	// namespace, which sees the child whatever namespace it is cloned into.
	cloning := s.Trace.Begin("clone and execute it")
	name, pid, pidfd, err := s.clone(image, files)
	cloning.End()
	if err != nil {
		unix.Close(ours)
		return nil, spawnError(err, s)
	}
	child := &Child{Pid: pid, PidFD: pidfd, report: ours, minder: minder.keep(), name: name, forks: s.Facts.Fork}
	if child.forks {
		child.image = fileAt("/proc/self/fd/" + child.name)
	}
	child.explain = func(f program.Failure) error { return Explain(p, f, child.Pid) }
	child.stamps = newStamps(s.Trace, p)
	return child, nil
}

// assign gives each descriptor that the child inherits its number there.
func (s *Spawn) assign(report, life int) []uintptr {
	files := append(s.Stdio[:], s.Preserved...)
	add := func(fd int) int {
		files = append(files, uintptr(fd))
		return len(files) - 1
	}
	s.Facts.Report = add(report)
	s.Facts.Gate = -1
	if s.Gate >= 0 {
		s.Facts.Gate = add(s.Gate)
	}
	if life >= 0 {
		s.Facts.Life = add(life)
	}
	s.Facts.Joins = make([]compile.Join, len(s.Joins))
	for i, j := range s.Joins {
		j.FD = add(j.FD)
		s.Facts.Joins[i] = j
	}
	for i, fd := range s.Mounts {
		s.Facts.Sources[i].FD = add(fd)
	}
	if s.Root >= 0 {
		s.Facts.RootFD = add(s.Root)
	}
	if s.Facts.NoMountSetattr {
		s.Facts.Spare = add(report) // whatever; it is there to be replaced
	}
	return files
}

// spawnError says what a failing clone may be about.
func spawnError(err error, s *Spawn) error {
	hint := ""
	switch {
	case errors.Is(err, unix.ENOSPC):
		hint = " (a limit of /proc/sys/user/max_*_namespaces is reached)"
	case errors.Is(err, unix.EACCES) && s.Cgroup >= 0:
		hint = " (an ordinary user enters cgroups of version 2 only from inside of what was delegated to him, see cgroups(7); systemd-run --user --scope -p Delegate=yes is a way there)"
	case errors.Is(err, unix.EAGAIN):
		hint = " (the limit of processes is reached: RLIMIT_NPROC or pids.max of the cgroup)"
	}
	return fmt.Errorf("start the container's init: %w%s", err, hint)
}
