package reaper

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/start/entry"
	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/shim/keeper"
)

// Idtypes of waitid(2).
const (
	pAll   = 0
	pPid   = 1
	pPidfd = 3
)

// Exit is how and when a process ended.
type Exit struct {
	Pid int
	// Status is the exit status, or 128 and the signal that ended the process.
	Status int
	At     time.Time
}

// Reaper waits for children. There can be only one in a process.
type Reaper struct {
	mu       sync.Mutex
	children map[int]*Child
	holds    int

	// sweeping is held by a sweep, until all that it has found has been told of, and from Suspend
	// to Resume.
	sweeping sync.Mutex
	wake     chan struct{}

	// memory is where an exit is noted before it is reaped, if there is a keeper, and kept says
	// that the keeper has children that a shim before this one has left.
	memory *keeper.Memory
	kept   bool
	// noted are the exits that were reaped, and maybe not told of, by the shim before this one.
	noted map[int]noted
}

// Child is a process whose end is awaited.
type Child struct {
	Pid int

	reaper *Reaper
	onExit func(Exit)
	done   chan struct{}
	exit   Exit // when done is closed
	pidfd  int  // -1 from the end of the process on; under the reaper's lock
	kept   bool // it is the keeper's child, not ours
	note   *keeper.Slot
}

// Start makes this process a subreaper and begins to reap.
func Start() (*Reaper, error) {
	r, err := Prepare()
	if err == nil {
		r.Resume()
	}
	return r, err
}

// Prepare makes this process a subreaper, but reaps no child until Resume is called: for the
// program that comes after another one in this process, and has to Adopt its children first.
func Prepare() (*Reaper, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	r := &Reaper{children: make(map[int]*Child), wake: make(chan struct{}, 1)}
	r.sweeping.Lock()
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	go func() {
		for {
			r.sweep()
			select {
			case <-died:
			case <-r.wake:
			}
		}
	}()
	return r, nil
}

// Suspend stops reaping, and reporting exits, until Resume. What ends meanwhile stays a zombie.
func (r *Reaper) Suspend() { r.sweeping.Lock() }

// Resume ends what Suspend or Prepare has begun.
func (r *Reaper) Resume() {
	r.sweeping.Unlock()
	r.poke()
}

// Hold stops the reaping of orphans until release is called. It must be held
// around everything that leaves this process a child whose pid is learnt only
// later, and by Adopt.
func (r *Reaper) Hold() (release func()) {
	r.mu.Lock()
	r.holds++
	r.mu.Unlock()
	return sync.OnceFunc(func() {
		r.mu.Lock()
		r.holds--
		r.mu.Unlock()
		r.poke()
	})
}

func (r *Reaper) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Adopt awaits the end of a process that is a child of this one already, dead
// or alive. onExit is called once, from the reaper, and must not block. Between
// the making of the process and Adopt there must be a Hold.
func (r *Reaper) Adopt(pid int, onExit func(Exit)) (*Child, error) {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("open a pidfd of process %d: %w", pid, err)
	}
	_, err = sys.WaitID(pPidfd, pidfd, unix.WNOHANG|unix.WNOWAIT)
	kept := false
	if err == unix.ECHILD && r.kept {
		_, err = r.memory.WaitID(pPidfd, pidfd, unix.WNOHANG|unix.WNOWAIT)
		kept = err == nil
	}
	if err != nil {
		unix.Close(pidfd)
		return nil, fmt.Errorf("process %d cannot be waited for: %w", pid, err)
	}
	r.mu.Lock()
	c := r.add(pid, pidfd, onExit)
	c.kept = kept
	r.mu.Unlock()
	r.poke()
	return c, nil
}

// Start forks and executes a program whose end is awaited; onExit may be nil.
func (r *Reaper) Start(argv0 string, argv []string, attr *syscall.ProcAttr, onExit func(Exit)) (*Child, error) {
	if attr.Sys == nil {
		attr.Sys = &syscall.SysProcAttr{}
	}
	pidfd := -1
	attr.Sys.PidFD = &pidfd
	// Under the lock, so that no sweep sees the child before it is known.
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := entry.ForkExec(argv0, argv, attr)
	if err != nil {
		return nil, fmt.Errorf("execute %s: %w", argv0, err)
	}
	return r.add(pid, pidfd, onExit), nil
}

func (r *Reaper) add(pid, pidfd int, onExit func(Exit)) *Child {
	c := &Child{Pid: pid, reaper: r, onExit: onExit, done: make(chan struct{}), pidfd: pidfd}
	r.children[pid] = c
	return c
}

// sweep reaps all that has ended and may be reaped now.
func (r *Reaper) sweep() {
	r.sweeping.Lock()
	defer r.sweeping.Unlock()
	r.mu.Lock()
	ended := r.sweepOf(false)
	if r.kept {
		ended = append(ended, r.sweepOf(true)...)
	}
	r.mu.Unlock()
	for _, c := range ended {
		if c.onExit != nil {
			c.onExit(c.exit)
		}
		c.note.Drop()
		close(c.done)
	}
}

// sweepOf reaps our own children, or the keeper's.
func (r *Reaper) sweepOf(kept bool) []*Child {
	if r.holds > 0 {
		return r.sweepKnown(kept)
	}
	return r.sweepAll(kept)
}

func (r *Reaper) sweepKnown(kept bool) (ended []*Child) {
	for _, c := range r.children {
		if c.kept == kept && r.reap(c) {
			ended = append(ended, c)
		}
	}
	return ended
}

// sweepAll takes the zombies in the kernel's order. Each is looked at before it
// is reaped: as long as it is not, no one else has its pid.
func (r *Reaper) sweepAll(kept bool) (ended []*Child) {
	for {
		zombie, err := r.waitID(kept, pAll, 0, unix.WNOHANG|unix.WNOWAIT)
		if err != nil {
			// No children at all (ECHILD): any that is still known was taken from us.
			return append(ended, r.sweepKnown(kept)...)
		}
		if zombie.Pid == 0 {
			return ended
		}
		if c := r.children[zombie.Pid]; c != nil && c.kept == kept && r.reap(c) {
			ended = append(ended, c)
			continue
		}
		r.waitID(kept, pPid, zombie.Pid, unix.WNOHANG)
	}
}

func (r *Reaper) waitID(kept bool, idType, id, options int) (sys.ChildExit, error) {
	if kept {
		return r.memory.WaitID(idType, id, options)
	}
	return sys.WaitID(idType, id, options)
}

// reap takes the status of c if it has ended.
func (r *Reaper) reap(c *Child) bool {
	options := unix.WNOHANG
	if r.memory != nil {
		options |= unix.WNOWAIT
	}
	e, err := r.waitID(c.kept, pPidfd, c.pidfd, options)
	if err == nil && e.Pid == 0 {
		return false
	}
	c.exit = Exit{Pid: c.Pid, Status: int(e.Status), At: time.Now()}
	switch {
	case err != nil:
		// Not our child any more, which only another waiter can bring about. The
		// process is gone; that its status is lost is said by 255, as runc does.
		c.exit.Status = 255
	case e.Code != sys.CldExited:
		c.exit.Status = 128 + int(e.Status)
	}
	if r.memory != nil {
		// Noted first: the shim that comes after us finds the one or the other.
		c.note = r.noteExit(c.exit)
		r.waitID(c.kept, pPidfd, c.pidfd, unix.WNOHANG)
	}
	delete(r.children, c.Pid)
	unix.Close(c.pidfd)
	c.pidfd = -1
	return true
}

// Wait waits for the end of the process.
func (c *Child) Wait() Exit {
	<-c.done
	return c.exit
}

// Done is closed when the process has ended and onExit has returned.
func (c *Child) Done() <-chan struct{} { return c.done }

// Ended gives the child that has ended so, before this program came.
func (r *Reaper) Ended(e Exit) *Child {
	c := &Child{Pid: e.Pid, reaper: r, done: make(chan struct{}), exit: e, pidfd: -1}
	close(c.done)
	return c
}

// Ended says whether Done is closed.
func (c *Child) Ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Known are the pids of the processes whose end is awaited.
func (r *Reaper) Known() (pids []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for pid := range r.children {
		pids = append(pids, pid)
	}
	return pids
}

// Signal sends a signal to this very process. It returns ESRCH when that has ended.
func (c *Child) Signal(sig syscall.Signal) error {
	c.reaper.mu.Lock()
	defer c.reaper.mu.Unlock()
	if c.pidfd < 0 {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(c.pidfd, sig, nil, 0)
}
