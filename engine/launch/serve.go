package launch

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/internal/proc/procs"
	"github.com/berth-runtime/berth/internal/sys"
	"golang.org/x/sys/unix"
)

// A Handler does what a Program asks for. fd is the descriptor that came with
// the Ask, or -1; the Handler owns it. Returning an error ends the child.
type Handler func(ask program.Request, fd int) error

// ErrExecuted is returned by Serve when the child has executed its program, or
// has died: its exit status tells which.
var ErrExecuted = errors.New("the program has been executed")

// Serve answers the child until it asks for the given thing, which stays
// unanswered, or executes its program (ErrExecuted).
func (c *Child) Serve(until program.Ask, handle Handler) error {
	for {
		ask, fd, err := c.receive()
		if err != nil {
			return err
		}
		switch {
		case ask.Kind == until:
			return nil
		case ask.Kind == program.AskMinder:
			if fd, err = c.own(int(ask.Value)); err != nil {
				return err
			}
			unix.Close(fd)
			c.minder.pid = int(ask.Value)
			continue
		case ask.Kind == program.AskForked:
			if err := c.follow(int(ask.Value)); err != nil {
				return err
			}
			c.forks--
			if c.forks == 0 && c.forked != nil {
				if err := c.forked(); err != nil {
					return err
				}
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

// OnceForked does what takes the pid of the process that the Program ends in: at once, or when the
// child has forked into that, before it goes on.
func (c *Child) OnceForked(do func() error) error {
	if c.forks > 0 {
		c.forked = do
		return nil
	}
	return do()
}

// Held is a child that waits for an answer, by which another process that has our descriptors can
// serve it: see Rejoin.
type Held struct {
	Pid    int
	Socket int
	// Name is what the kernel calls it until it executes its program.
	Name string
}

// Held is this child.
func (c *Child) Held() Held { return Held{c.Pid, c.report, c.name} }

// Rejoin goes on with a child that was held by a process that has ended since. That may have
// answered it: one answer too many is not looked at. It takes the socket over.
func Rejoin(h Held, talk *program.Talk, explain func(program.Failure) error) *Child {
	c := Attach(h.Socket, h.Pid, talk, explain)
	c.name = h.Name
	return c
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
		return fmt.Errorf("write to the container's init: %w", err)
	}
	return nil
}

// SendDescriptor gives a child that waits for it a descriptor.
func (c *Child) SendDescriptor(fd int) error {
	if err := unix.Sendmsg(c.report, []byte{1}, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("hand the container's init a descriptor: %w", err)
	}
	return nil
}

// receive reads one message. What comes is a stranger's word: see program.Talk.
func (c *Child) receive() (program.Request, int, error) {
	for {
		switch heard, err := c.await(); {
		case err != nil:
			return program.Request{}, -1, err
		case !heard:
			// Killed between its fork and the news of it, it leaves a process that has our
			// socket too, so that the end of its own would not be heard.
			c.reapLost()
			return program.Request{}, -1, ErrExecuted
		}
		buf := make([]byte, c.stamps.room())
		var control [24]byte
		n, oobn, err := recvmsg(c.report, buf, control[:])
		switch {
		case err == unix.ECONNRESET, err == nil && n == 0:
			return program.Request{}, -1, ErrExecuted
		case err != nil:
			return program.Request{}, -1, fmt.Errorf("read from the container's init: %w", err)
		}
		fds := sys.ReceivedDescriptors(control[:oobn])
		if len(fds) == 0 && c.stamps.take(buf[:n]) {
			c.stamps = nil // they are told once
			continue
		}
		if reason, ok := program.ParseReasons(buf[:n]); ok && len(fds) == 0 && !c.reasoned {
			c.reason, c.reasoned = reason, true // of the failure that comes next, so once
			continue
		}
		ask, failure, err := c.talk.Hear(buf[:n], len(fds))
		if err != nil || failure != nil {
			closeAll(fds...)
			if failure != nil {
				err = c.explain(*failure)
			}
			return program.Request{}, -1, err
		}
		if len(fds) == 0 {
			return ask, -1, nil
		}
		return ask, fds[0], nil
	}
}

// EndedEarly reports which signal has ended a child that never executed its
// program: it still has the name of our init then, or has not even executed that.
// Serve can't tell that from an execve, since the socket is closed by both.
func (c *Child) EndedEarly() (unix.Signal, bool) {
	if c.name == "" || c.executes() || !c.isInit() {
		return 0, false
	}
	if c.PidFD < 0 {
		return 0, true // not our child: who waits for it knows more
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
	s, err := procs.ReadStat(c.Pid)
	if err != nil {
		return false
	}
	const forkNoExec = 0x40 // PF_FORKNOEXEC of include/linux/sched.h, which execve removes
	return s.Name == c.name || s.Flags&forkNoExec != 0
}

func recvmsg(fd int, buf, control []byte) (n, oobn int, err error) {
	for {
		n, oobn, _, _, err = unix.Recvmsg(fd, buf, control, unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			return n, oobn, err
		}
	}
}

// own opens a process that the child speaks of as its own making: it is our child, as
// its siblings are, and executes what that does, which is one Program's alone.
func (c *Child) own(pid int) (int, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, fmt.Errorf("open the container's first process %d: %w", pid, err)
	}
	_, err = sys.WaitID(unix.P_PIDFD, fd, unix.WNOHANG|unix.WNOWAIT)
	if at, there := c.executable(pid); err == nil && (pid == c.Pid || there && at != c.image) {
		err = errors.New("it executes something else")
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("the container's init names process %d, which it has not created: %w", pid, err)
	}
	return fd, nil
}

// executable is what a process executes, where it has not ended and we may look.
func (c *Child) executable(pid int) (file, bool) {
	at := fileAt("/proc/" + strconv.Itoa(pid) + "/exe")
	return at, at != (file{})
}

// follow turns to the child's child, in which the Program goes on, and reaps
// the one that is done. The new one is our child too and can't be reused before
// we wait for it.
func (c *Child) follow(pid int) error {
	fd, err := c.own(pid)
	if err != nil {
		return err
	}
	old, oldFD := c.Pid, c.PidFD
	c.Pid, c.PidFD = pid, fd
	// Its exit is all that it has left to do, and it may be in a cgroup that the container
	// freezes before it comes to that.
	_ = unix.Kill(old, unix.SIGKILL)
	if oldFD >= 0 {
		_, _ = sys.Poll([]unix.PollFd{{Fd: int32(oldFD), Events: unix.POLLIN}}, int(killBound.Milliseconds()))
		unix.Close(oldFD)
	}
	if !ends(old, killBound) {
		return nil // one that the version 1 freezer holds: it is reaped as orphans are
	}
	for {
		if _, err := unix.Wait4(old, nil, 0, nil); err != unix.EINTR {
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

// Attach connects to a process at its gate: another process's child, over a socket
// that it has accepted. It takes the socket over. A failure is explained by
// the given function, as the Program is not known here.
func Attach(socket, pid int, talk *program.Talk, explain func(program.Failure) error) *Child {
	return &Child{Pid: pid, PidFD: -1, report: socket, talk: talk, explain: explain, patience: patience{bound: Patience}}
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

// killBound is how long the end of a process is waited for that was killed. It comes at
// once, unless a tracer does not let go, which another process of the
// container may (ptrace(2): the tracer is told first), or where it waits for a file
// system that does not answer.
const killBound = time.Second

// ends reports whether a child of ours can be reaped, or is gone, within a time. There
// is no event for a tracer's letting go.
func ends(pid int, limit time.Duration) bool {
	for end := time.Now().Add(limit); ; {
		exit, err := sys.WaitID(unix.P_PID, pid, unix.WNOHANG|unix.WNOWAIT)
		if err != nil || exit.Pid != 0 {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		_, _ = sys.Poll(nil, 1)
	}
}

// Kill ends the child and reaps it. One that is being traced is left to whatever process
// reaps our children, or us.
func (c *Child) Kill() {
	c.Close()
	if c.PidFD >= 0 {
		_ = unix.PidfdSendSignal(c.PidFD, unix.SIGKILL, nil, 0)
	} else {
		_ = unix.Kill(c.Pid, unix.SIGKILL)
	}
	if ends(c.Pid, killBound) {
		_, _ = c.Wait()
	} else {
		c.minder.release()
		c.Detach()
	}
	if c.forks > 0 {
		c.reapLost() // it may have forked, and the news of that not have come
	}
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
