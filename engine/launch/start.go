package launch

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/internal/trace"
	"golang.org/x/sys/unix"
)

// A Spawn says how a child is cloned.
type Spawn struct {
	// Program is compiled once the numbers of the descriptors are known.
	Program func(*Numbers) (*program.Program, error)
	// Forks is how often the Program goes on in a child.
	Forks int

	// Stdio are the child's first three descriptors, Preserved those from 3 on.
	Stdio     [3]uintptr
	Preserved []uintptr
	// Inherited are more descriptors that the Program is to have.
	Inherited []int
	// Minded gives the child a process that minds the others of its pid namespace.
	Minded bool

	CloneFlags uintptr
	// Patience bounds how long the child may be silent while it is served; 0 is for ever.
	Patience time.Duration
	// Interrupted, if not nil, is asked when the descriptor Signals can be read: whether
	// a signal asks for the end.
	Signals     int
	Interrupted func() bool
	// Trace is told what takes how long, or nil.
	Trace *trace.Trace
	// Cgroup is a directory of the unified hierarchy to clone the child into, or -1.
	Cgroup int
}

// Numbers are those of the descriptors in the child.
type Numbers struct {
	// Report is the socket to us. Life ends when we do, 0 if it does not matter.
	Report, Life int
	Inherited    []int
}

// A Child is a process that runs a Program.
type Child struct {
	Pid   int
	PidFD int
	// Usage is what it has used, with the children that it has waited for, once Wait
	// has returned.
	Usage  unix.Rusage
	report int
	minder *minder
	talk   *program.Talk
	patience
	explain func(program.Failure) error
	reason  string // what the kernel has said about what fails next
	// reasoned is set once that has come.
	reasoned bool
	// name is what the kernel calls the process until it executes its program.
	name string
	// forks is how many forks there is still to be news of.
	forks int
	// forked is done after the last one, if there is anything to do; see OnceForked.
	forked func() error
	image  file // what it executes
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
	files, numbers := s.assign(theirs, minder.theirs)
	compiling := s.Trace.Begin("compile the Program")
	p, err := s.Program(numbers)
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
	child := &Child{Pid: pid, PidFD: pidfd, report: ours, minder: minder.keep(), name: name, forks: s.Forks}
	if child.forks > 0 {
		child.image = fileAt("/proc/self/fd/" + strconv.Itoa(image))
	}
	child.explain = func(f program.Failure) error { return Explain(p, f, child.Pid, child.reason) }
	child.talk = p.Talk()
	child.patience = s.patience()
	child.stamps = newStamps(s.Trace, p)
	return child, nil
}

// assign gives each descriptor that the child inherits its number there.
func (s *Spawn) assign(report, life int) ([]uintptr, *Numbers) {
	files := append(s.Stdio[:], s.Preserved...)
	add := func(fd int) int {
		files = append(files, uintptr(fd))
		return len(files) - 1
	}
	n := &Numbers{Report: add(report), Inherited: make([]int, len(s.Inherited))}
	if s.Minded {
		n.Life = add(life)
	}
	for i, fd := range s.Inherited {
		n.Inherited[i] = add(fd)
	}
	return files, n
}

// Numbers are those that the descriptors would have.
func (s *Spawn) Numbers() *Numbers {
	_, n := s.assign(-1, -1)
	return n
}

// spawnError says what a failing clone may be about.
func spawnError(err error, s *Spawn) error {
	hint := ""
	switch {
	case errors.Is(err, unix.ENOSPC):
		hint = " (a limit of /proc/sys/user/max_*_namespaces is reached)"
	case errors.Is(err, unix.ENOSYS) && s.Cgroup >= 0:
		hint = " (clone3 is needed to begin in a cgroup of version 2: Linux before 5.7 lacks it, and seccomp filters hide it, as systemd's RestrictNamespaces= does)"
	case errors.Is(err, unix.EACCES) && s.Cgroup >= 0:
		hint = " (an ordinary user can only enter version 2 cgroups from inside a delegated one, see cgroups(7); try systemd-run --user --scope -p Delegate=yes)"
	case errors.Is(err, unix.EAGAIN):
		hint = " (a limit of processes is reached: linux.resources.pids.limit or RLIMIT_NPROC)"
	}
	return fmt.Errorf("start the container's init: %w%s", err, hint)
}
