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
	raw     *terminal.Raw
	master  *os.File
	output  sync.WaitGroup
}

// newForeground catches signals from now on: one that comes while the container
// is made reaches it once it runs.
func newForeground() *foreground {
	f := &foreground{signals: make(chan os.Signal, 128)}
	signal.Notify(f.signals)
	// Go uses SIGURG to interrupt its own threads, and SIGCHLD tells of our child.
	signal.Reset(unix.SIGURG, unix.SIGCHLD)
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
	ended := make(chan struct{})
	go func() {
		// Reaping comes after the last signal has been sent, so none can reach a
		// stranger with the same pid.
		fds := []unix.PollFd{{Fd: int32(child.PidFD), Events: unix.POLLIN}}
		for {
			if _, err := unix.Poll(fds, -1); err != unix.EINTR {
				break
			}
		}
		close(ended)
	}()
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
		case <-ended:
			f.output.Wait()
			return child.Wait()
		}
	}
}

func (f *foreground) close() {
	signal.Stop(f.signals)
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
