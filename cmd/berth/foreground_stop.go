package main

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/engine/launch"
	"github.com/berth-runtime/berth/internal/proc/procs"
	"github.com/berth-runtime/berth/internal/sys"
)

// A person's Ctrl-Z is to give the shell back, as with any other command. A container's process is
// in a session of its own, where the kernel stops nothing for a terminal's keys (its process group
// is orphaned, setpgid(2)). So we stop it, and ourselves.

// holdsTerminal reports whether we may read from our terminal and set its modes: in the background
// that would stop us (SIGTTIN, SIGTTOU). A terminal of another session does not.
func holdsTerminal() bool {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// underShell reports whether there is what would continue us: a process of our session above our
// process group, which a shell is that has started us as a job. The kernel asks the same before it
// stops anything.
func underShell() bool {
	group := unix.Getpgrp()
	session, err := unix.Getsid(0)
	for pid := unix.Getppid(); err == nil && pid > 1; pid = parentOf(pid) {
		above, err := unix.Getpgid(pid)
		if err != nil {
			return false
		}
		if above != group {
			its, err := unix.Getsid(pid)
			return err == nil && its == session
		}
	}
	return false
}

// parentOf is the parent of a process, 0 where that is not known.
func parentOf(pid int) int {
	s, err := procs.ReadStat(pid)
	if err != nil {
		return 0
	}
	return s.Parent
}

// defaultAction reports whether a process neither ignores nor catches a signal.
func defaultAction(pid int, signal unix.Signal) bool {
	masks, err := procs.Status(pid, "SigIgn", "SigCgt")
	if err != nil {
		return false
	}
	for _, text := range masks {
		mask, err := strconv.ParseUint(text, 16, 64)
		if err != nil || mask&(1<<(signal-1)) != 0 {
			return false
		}
	}
	return true
}

// copyInput passes on what is typed, and takes the key from it that suspends. That goes to the
// process where it does something about it, as shells and editors do; where it would be stopped by
// it, and nothing in the container could continue it, it comes to us as the signal.
func (f *foreground) copyInput(stdin, master *os.File) {
	buf := make([]byte, 32<<10)
	for {
		fds := []unix.PollFd{{Fd: int32(stdin.Fd()), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			return
		}
		if terminal.IsTerminal(int(stdin.Fd())) && !holdsTerminal() {
			<-f.resumed
			continue
		}
		n, err := stdin.Read(buf)
		for text := buf[:max(n, 0)]; len(text) > 0; {
			before, key, rest := f.cutKey(text, master)
			if _, err := master.Write(before); err != nil {
				return
			}
			if key {
				_ = unix.Kill(os.Getpid(), unix.SIGTSTP) // which the wait reads
			}
			text = rest
		}
		if err != nil {
			return
		}
	}
}

// cutKey finds the key that suspends.
func (f *foreground) cutKey(text []byte, master *os.File) (before []byte, key bool, rest []byte) {
	modes, err := unix.IoctlGetTermios(int(master.Fd()), unix.TCGETS)
	if err != nil || modes.Lflag&unix.ISIG == 0 || modes.Cc[unix.VSUSP] == 0 || !terminal.IsTerminal(0) {
		return text, false, nil
	}
	for i, b := range text {
		if b == modes.Cc[unix.VSUSP] && f.stopsByKey(master) && underShell() {
			return text[:i], true, text[i+1:]
		}
	}
	return text, false, nil
}

// stopsByKey reports whether the key is the command's own to be stopped by.
func (f *foreground) stopsByKey(master *os.File) bool {
	pid := int(f.pid.Load())
	group, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPGRP)
	return err == nil && pid > 0 && group == pid && defaultAction(pid, unix.SIGTSTP)
}

// suspends reports whether a SIGTSTP is our terminal's word to stop, rather than a client's that
// is to be passed on. One of our streams is the terminal: to open it anew we may have no right.
func (f *foreground) suspends() bool {
	for fd := range 3 {
		if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil {
			return group == unix.Getpgrp() && underShell()
		}
	}
	return false
}

// suspend stops the process and then ourselves with all of our job, until the shell continues it.
func (f *foreground) suspend(child *launch.Child) {
	f.signalGroup(child, unix.SIGSTOP)
	// Until it is stopped it may read what is typed for the shell.
	_, _ = sys.WaitID(unix.P_PIDFD, child.PidFD, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT)
	if f.raw != nil {
		f.raw.Restore()
		f.raw = nil
	}
	again, err := sys.DefaultSignal(unix.SIGTSTP)
	if err == nil {
		_ = unix.Kill(0, unix.SIGTSTP)
		// It may be some instructions before we are stopped: SIGCONT says that it is over. Another
		// signal, or the end of the process, is not waited with.
		for over := false; !over; {
			fds := []unix.PollFd{{Fd: int32(f.signals), Events: unix.POLLIN}, {Fd: int32(child.PidFD), Events: unix.POLLIN}}
			if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
				break
			}
			over = fds[1].Revents != 0
			f.take(func(s unix.Signal) {
				over = true
				if s != unix.SIGCONT {
					f.early = append(f.early, s)
				}
			})
		}
		again()
	}
	f.resume(child)
}

// resume takes the terminal again, if it is ours, and has the process go on.
func (f *foreground) resume(child *launch.Child) {
	_ = f.takeTerminal() // without it the container goes on, and is typed to line by line
	f.signalGroup(child, unix.SIGCONT)
	select {
	case f.resumed <- struct{}{}:
	default:
	}
}

// takeTerminal has our terminal hand every key on.
func (f *foreground) takeTerminal() error {
	if f.master == nil || f.raw != nil || !terminal.IsTerminal(0) || !holdsTerminal() {
		return nil
	}
	raw, err := terminal.MakeRaw(0)
	if err != nil {
		return err
	}
	f.raw = raw
	terminal.CopySize(0, int(f.master.Fd()))
	return nil
}

// signalGroup signals a process with its group, if it leads one.
func (f *foreground) signalGroup(child *launch.Child, signal unix.Signal) {
	if group, err := unix.Getpgid(child.Pid); err == nil && group == child.Pid {
		_ = unix.Kill(-child.Pid, signal)
		return
	}
	_ = unix.PidfdSendSignal(child.PidFD, signal, nil, 0)
}
