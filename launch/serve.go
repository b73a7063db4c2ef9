package launch

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/compile"
	"github.com/berth-runtime/berth/internal/procs"
	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/program"
	"golang.org/x/sys/unix"
)

// A Handler does what a Program asks for. fd is the descriptor that came with
// the Ask, or -1; the Handler owns it. Returning an error ends the child.
type Handler func(ask compile.Record, fd int) error

// ErrExecuted is returned by Serve when the child has executed its program, or
// has died: its exit status tells which.
var ErrExecuted = errors.New("the program has been executed")

// Serve answers the child until it asks for the given thing, which stays
// unanswered, or executes its program (ErrExecuted).
func (c *Child) Serve(until compile.Ask, handle Handler) error {
	for {
		ask, fd, err := c.receive()
		if err != nil {
			return err
		}
		switch {
		case ask.Kind == until:
			return nil
		case ask.Kind == compile.Minder:
			c.minder.pid = int(ask.Value)
			continue
		case ask.Kind == compile.Forked:
			c.forks = false
			if err := c.follow(int(ask.Value)); err != nil {
				return err
			}
			if err := c.Answer(); err != nil {
				return err
			}
			continue
		}
		if err := handle(ask, fd); err != nil {
			return err
		}
		if err := c.Answer(); err != nil {
			return err
		}
	}
}

// Answer lets a waiting child go on. A child that was killed meanwhile can't be
// told anything; the next thing heard of it says so.
func (c *Child) Answer() error {
	err := unix.Sendto(c.report, []byte{1}, unix.MSG_NOSIGNAL, nil)
	if err != nil && err != unix.EPIPE && err != unix.ECONNRESET {
		return fmt.Errorf("answer the container's init: %w", err)
	}
	return nil
}

// Send gives a child that waits for it a message of more than an answer.
func (c *Child) Send(message []byte) error {
	if err := unix.Sendto(c.report, message, unix.MSG_NOSIGNAL, nil); err != nil {
		return fmt.Errorf("tell the container's init: %w", err)
	}
	return nil
}

// receive reads one record.
func (c *Child) receive() (compile.Record, int, error) {
	if c.forks && !c.speaks() {
		c.reapLost()
		return compile.Record{}, -1, ErrExecuted
	}
	buf := make([]byte, c.stamps.room())
	var control [24]byte
	n, oobn, err := recvmsg(c.report, buf, control[:])
	if err == nil && c.stamps.take(buf[:n]) {
		return c.receive()
	}
	switch {
	case err == unix.ECONNRESET, err == nil && n == 0:
		return compile.Record{}, -1, ErrExecuted
	case err != nil:
		return compile.Record{}, -1, fmt.Errorf("hear from the container's init: %w", err)
	}
	if f, ok := program.ParseFailure(buf[:n]); ok {
		return compile.Record{}, -1, c.explain(f)
	}
	ask, ok := compile.ParseAsk(buf[:n])
	if !ok {
		return ask, -1, fmt.Errorf("the container's init sent %d bytes that mean nothing", n)
	}
	return ask, sys.ReceivedDescriptor(control[:oobn]), nil
}

// speaks waits for something to read. It reports false where the child has ended
// without a word: killed between its fork and the news of it, it leaves a process
// that has our socket too, so that the end of its own would not be heard.
func (c *Child) speaks() bool {
	fds := []unix.PollFd{{Fd: int32(c.report), Events: unix.POLLIN}, {Fd: int32(c.PidFD), Events: unix.POLLIN}}
	for {
		n, err := sys.Poll(fds, -1)
		if n > 0 {
			return fds[0].Revents != 0 || fds[1].Revents == 0
		}
		if err != unix.EINTR {
			return true // what is wrong, the read will tell
		}
	}
}

// EndedEarly reports which signal has ended a child that never executed its
// program: it still has the name of our init then, or has not even executed that.
// Serve can't tell that from an execve, since the socket is closed by both.
func (c *Child) EndedEarly() (unix.Signal, bool) {
	if c.name == "" || c.executes() || !c.isInit() {
		return 0, false
	}
	ended, err := sys.WaitID(unix.P_PIDFD, c.PidFD, unix.WNOWAIT)
	return unix.Signal(ended.Status), err == nil && ended.Code != sys.CldExited
}

// executes reports whether a process that has closed its socket executes
// anything. Both execve and exit close descriptors when they have let go of the
// memory of what was executed before (begin_new_exec, do_exit): so it is the
// program, or the process is on its way out and keeps the name that it has.
func (c *Child) executes() bool {
	var path [1]byte
	_, err := unix.Readlink("/proc/"+strconv.Itoa(c.Pid)+"/exe", path[:])
	return err != unix.ENOENT && err != unix.ESRCH
}

// isInit reports whether the process is called what our init is, or is the clone of us
// that was to become it. The latter is told by a flag, as that has our name, and the
// program could have that too.
func (c *Child) isInit() bool {
	fd, err := unix.Open("/proc/"+strconv.Itoa(c.Pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var buf [512]byte
	n, _ := unix.Read(fd, buf[:])
	name, flags := nameAndFlags(string(buf[:max(n, 0)]))
	const forkNoExec = 0x40 // PF_FORKNOEXEC of include/linux/sched.h, which execve takes away
	return name == c.name || flags&forkNoExec != 0
}

// nameAndFlags reads what a process is called, and its flags, from its file stat
// (proc_pid_stat(5)). A name may have any characters.
func nameAndFlags(stat string) (name string, flags uint64) {
	_, called, rest, ok := procs.SplitStat([]byte(stat))
	if !ok {
		return "", 0
	}
	// Behind the name: state, parent, group, session, terminal, its group, flags.
	const place = 6
	if fields := strings.Fields(string(rest)); len(fields) > place {
		flags, _ = strconv.ParseUint(fields[place], 10, 64)
	}
	return string(called), flags
}

func recvmsg(fd int, buf, control []byte) (n, oobn int, err error) {
	_, _ = sys.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1) // what is wrong, the read will tell
	for {
		n, oobn, _, _, err = unix.Recvmsg(fd, buf, control, unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			return n, oobn, err
		}
	}
}

// follow turns to the child's child, in which the Program goes on, and reaps
// the one that is done. The new one is our child too and can't be reused before
// we wait for it.
func (c *Child) follow(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("open the container's first process %d: %w", pid, err)
	}
	old := c.Pid
	if c.PidFD >= 0 {
		unix.Close(c.PidFD)
	}
	c.Pid, c.PidFD = pid, fd
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(old, &status, 0, nil); err != unix.EINTR {
			return nil
		}
	}
}

// Close lets go of the socket. A child that still waits for an answer ends.
func (c *Child) Close() {
	if c.report >= 0 {
		unix.Close(c.report)
		c.report = -1
	}
}

// Attach turns to a process at its gate: somebody else's child, over a socket
// that it has accepted. It takes the socket over. A failure is explained by
// the given function, as the Program is not known here.
func Attach(socket, pid int, explain func(program.Failure) error) *Child {
	return &Child{Pid: pid, PidFD: -1, report: socket, explain: explain}
}

// Detach lets go of a process without waiting for it.
func (c *Child) Detach() {
	c.Close()
	if c.PidFD >= 0 {
		unix.Close(c.PidFD)
		c.PidFD = -1
	}
}

// EndOthers ends all other processes of the pid namespace, where a minder minds
// them.
func (c *Child) EndOthers() { c.minder.release() }

// Kill ends the child and reaps it.
func (c *Child) Kill() {
	c.Close()
	if c.PidFD >= 0 {
		_ = unix.PidfdSendSignal(c.PidFD, unix.SIGKILL, nil, 0)
	} else {
		_ = unix.Kill(c.Pid, unix.SIGKILL)
	}
	_, _ = c.Wait()
}

// Wait reaps the child and returns its status.
func (c *Child) Wait() (unix.WaitStatus, error) {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(c.Pid, &status, 0, &c.Usage)
		if err == unix.EINTR {
			continue
		}
		if c.PidFD >= 0 {
			unix.Close(c.PidFD)
			c.PidFD = -1
		}
		c.minder.reap()
		if err != nil {
			return 0, fmt.Errorf("wait for process %d: %w", c.Pid, err)
		}
		return status, nil
	}
}
