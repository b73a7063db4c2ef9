package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/engine/launch"
	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/internal/trace"
	"golang.org/x/sys/unix"
)

// foreground stands between the caller and a process: signals go on to the
// process, its terminal is tied to ours.
type foreground struct {
	signals int           // readable where signals have come: a byte for each
	early   []unix.Signal // that have come before there was a process to pass them on to
	pid     atomic.Int32  // of the process, once there is one
	resumed chan struct{} // gets a value when the terminal may be ours again
	raw     *terminal.Raw
	master  *os.File
	output  sync.WaitGroup

	// whole lets the signals of a terminal's keys reach the whole process group, as
	// those of its own terminal would.
	whole bool
	// beside says that the process is in our process group: a terminal's keys signal it as
	// they do us.
	beside bool
	trace  *trace.Trace

	// deadline is a timer that ends the process, -1 for none; expired says that it did.
	deadline int
	expired  bool

	// confine takes the rights from this process that it needs no more once the
	// container's runs. Those that are over at once are not worth it.
	confine func()
}

// lasting is how long a process has run, in milliseconds, whose end is waited for
// without rights.
const lasting = 1000

// newForeground catches signals from now on: one that comes while the container
// is made reaches its process once that runs.
func (p *program) newForeground() (*foreground, error) {
	var signals []unix.Signal
	atTerminal := terminal.IsTerminal(0)
	for n := unix.Signal(1); n <= 64; n++ {
		switch n {
		case unix.SIGURG, unix.SIGCHLD, unix.SIGKILL, unix.SIGSTOP, // Go's own, our child's, not to be caught
			unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGPROF, unix.SIGPIPE, // faults of ours
			32, 33: // the C library's
		case unix.SIGTTIN, unix.SIGTTOU:
			if !atTerminal { // a job in the background that reaches for it is to be stopped
				signals = append(signals, n)
			}
		default:
			signals = append(signals, n)
		}
	}
	fd, err := sys.CatchSignals(signals...)
	if err != nil {
		return nil, err
	}
	return &foreground{signals: fd, resumed: make(chan struct{}, 1), deadline: -1, trace: p.trace}, nil
}

// limit ends the process after a time.
func (f *foreground) limit(after time.Duration) error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("timerfd_create", err)
	}
	f.deadline = fd
	return os.NewSyscallError("timerfd_settime", unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(after))}, nil))
}

// console ties the master of the process's terminal to our standard streams.
func (f *foreground) console(master *os.File) error {
	f.master = master
	if err := terminal.ClearONLCR(int(master.Fd())); err != nil {
		return err
	}
	if err := f.takeTerminal(); err != nil {
		return err
	}
	go f.copyInput(os.Stdin, master)
	f.output.Add(1)
	go func() {
		defer f.output.Done()
		_ = terminal.CopyOutput(os.Stdout, master)
	}()
	return nil
}

// wait forwards signals until the process has ended.
func (f *foreground) wait(child *launch.Child) (unix.WaitStatus, error) {
	defer f.trace.Begin("the program runs").End()
	fds := []unix.PollFd{{Fd: int32(f.signals), Events: unix.POLLIN}, {Fd: int32(child.PidFD), Events: unix.POLLIN}, {Fd: int32(f.deadline), Events: unix.POLLIN}}
	timeout := lasting
	f.pid.Store(int32(child.Pid))
	if len(f.early) > 0 {
		f.forward(child)
	}
	for {
		switch n, err := sys.Poll(fds, timeout); {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, fmt.Errorf("wait for process %d: %w", child.Pid, err)
		case n == 0:
			timeout = -1
			debug.SetGCPercent(100) // what lasts is worth collecting garbage
			f.confine()
			continue
		}
		f.forward(child)
		if fds[1].Revents != 0 {
			child.EndOthers() // they may hold the terminal, whose end is waited for
			// Reaping comes after the last signal has been sent, so none can reach a
			// stranger with the same pid.
			f.output.Wait()
			return child.Wait()
		}
		if fds[2].Revents != 0 {
			f.expired = true
			fds[2].Fd = -1 // poll(2) passes over it
			_ = unix.PidfdSendSignal(child.PidFD, unix.SIGKILL, nil, 0)
		}
	}
}

// interrupted takes the signals that have come while a process is made, and reports
// whether one of them asks for an end. They are passed on once it is there.
func (f *foreground) interrupted() (end bool) {
	f.take(func(s unix.Signal) {
		f.early = append(f.early, s)
		switch s {
		case unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT:
			end = true
		}
	})
	return end
}

// forward passes on the signals that have come.
func (f *foreground) forward(child *launch.Child) {
	pass := func(s unix.Signal) {
		switch {
		case s == unix.SIGTSTP && f.suspends():
			f.suspend(child)
		case s == unix.SIGCONT && terminal.IsTerminal(0):
			f.resume(child)
		case s != unix.SIGWINCH:
			f.send(child, s)
		case f.master != nil:
			terminal.CopySize(0, int(f.master.Fd()))
		}
	}
	for _, s := range f.early {
		pass(s)
	}
	f.early = nil
	f.take(pass)
}

// await waits until something is over that the process has left, or a signal asks us to end. It
// tells that it does, if it lasts.
func (f *foreground) await(over <-chan struct{}, tell func()) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	go func() {
		<-over
		w.Close()
	}()
	fds := []unix.PollFd{{Fd: int32(f.signals), Events: unix.POLLIN}, {Fd: int32(r.Fd()), Events: unix.POLLIN}}
	timeout := lasting
	for {
		n, err := unix.Poll(fds, timeout)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return os.NewSyscallError("poll", err)
		case n == 0:
			tell()
			timeout = -1
		case fds[1].Revents != 0 || f.interrupted():
			return nil
		}
	}
}

// take reads the signals that have come.
func (f *foreground) take(each func(unix.Signal)) {
	var numbers [64]byte
	for {
		n, err := unix.Read(f.signals, numbers[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return // EAGAIN: there are no more
		}
		for _, number := range numbers[:n] {
			each(unix.Signal(number))
		}
	}
}

func (f *foreground) send(child *launch.Child, signal unix.Signal) {
	switch signal {
	case unix.SIGINT, unix.SIGQUIT, unix.SIGHUP:
		if f.beside && terminal.IsTerminal(0) {
			return
		}
		if f.whole && unix.Kill(-child.Pid, signal) == nil { // it leads a session
			return
		}
	}
	_ = unix.PidfdSendSignal(child.PidFD, signal, nil, 0)
}

// close gives the terminal back. Signals stay caught for what is left to do.
func (f *foreground) close() {
	if f.raw != nil {
		f.raw.Restore()
		f.raw = nil
	}
	if f.master != nil {
		f.master.Close()
		f.master = nil
	}
	if f.deadline >= 0 {
		unix.Close(f.deadline)
		f.deadline = -1
	}
}

func exitCode(s unix.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}
