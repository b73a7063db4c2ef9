package main

import (
	"io"
	"os"
	"os/signal"
	"sync"

	"github.com/berth-runtime/berth/internal/terminal"
	"github.com/berth-runtime/berth/launch"
	"golang.org/x/sys/unix"
)

// foreground stands between the caller and a process: signals go on to the
// process, its terminal is tied to ours.
type foreground struct {
	signals chan os.Signal
	armed   chan struct{} // closed when the signals that would end us are caught
	ready   chan struct{} // closed when all signals are caught
	raw     *terminal.Raw
	master  *os.File
	output  sync.WaitGroup
}

// newForeground catches signals from now on: one that comes while the container
// is made reaches it once it runs. What ends us is caught before anything is
// made; the rest meanwhile, as each signal costs a switch of threads in Go.
func newForeground() *foreground {
	f := &foreground{signals: make(chan os.Signal, 128), armed: make(chan struct{}), ready: make(chan struct{})}
	go func() {
		defer close(f.ready)
		signal.Notify(f.signals, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM)
		close(f.armed)
		var rest []os.Signal
		for n := unix.Signal(1); n <= 64; n++ {
			switch n {
			case unix.SIGURG, unix.SIGCHLD, unix.SIGKILL, unix.SIGSTOP, // Go's own, our child's, not to be caught
				unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGPROF, unix.SIGPIPE, // faults of ours
				32, 33: // the C library's
			default:
				rest = append(rest, n)
			}
		}
		signal.Notify(f.signals, rest...)
	}()
	return f
}

// console ties the master of the process's terminal to our standard streams.
func (f *foreground) console(master *os.File) error {
	f.master = master
	if terminal.IsTerminal(0) {
		raw, err := terminal.MakeRaw(0)
		if err != nil {
			return err
		}
		f.raw = raw
		terminal.CopySize(0, int(master.Fd()))
	}
	go func() { _, _ = io.Copy(master, os.Stdin) }()
	f.output.Add(1)
	go func() {
		defer f.output.Done()
		_ = terminal.CopyOutput(os.Stdout, master)
	}()
	return nil
}

// wait forwards signals until the process has ended.
func (f *foreground) wait(child *launch.Child) (unix.WaitStatus, error) {
	ended := make(chan error, 1)
	go func() { ended <- awaitEnd(child.PidFD) }()
	for {
		select {
		case s := <-f.signals:
			if s == unix.SIGWINCH {
				if f.master != nil {
					terminal.CopySize(0, int(f.master.Fd()))
				}
				continue
			}
			if number, ok := s.(unix.Signal); ok {
				_ = unix.PidfdSendSignal(child.PidFD, number, nil, 0)
			}
		case err := <-ended:
			if err != nil {
				return 0, err
			}
			// Reaping comes after the last signal has been sent, so none can reach a
			// stranger with the same pid.
			f.output.Wait()
			return child.Wait()
		}
	}
}

// awaitEnd waits until a pidfd is readable, which is when its process has ended.
// It goes through Go's poller, so that no thread is held.
func awaitEnd(pidfd int) error {
	own, err := unix.FcntlInt(uintptr(pidfd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(own, true); err != nil {
		unix.Close(own)
		return err
	}
	file := os.NewFile(uintptr(own), "pidfd")
	defer file.Close()
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return err != nil && err != unix.EINTR || n == 1
	})
}

// close gives the terminal back. Signals stay caught: to let go of them takes Go
// longer than what is left to do.
func (f *foreground) close() {
	if f.raw != nil {
		f.raw.Restore()
		f.raw = nil
	}
	if f.master != nil {
		f.master.Close()
		f.master = nil
	}
}

func exitCode(s unix.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}
