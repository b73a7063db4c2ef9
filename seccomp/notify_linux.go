package seccomp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/sys"
)

// ErrGone says that a call waits no more: it has been answered, the thread that made it was killed,
// or a signal interrupted it. What was read of its memory may be another process's.
var ErrGone = errors.New("the system call waits no more")

// A Listener receives the calls that a filter answers by SCMP_ACT_NOTIFY. Each waits in the kernel
// until it is answered; once the listener is closed, all get ENOSYS.
//
// Its methods may be called by several goroutines at once.
type Listener struct {
	receiving sync.Mutex // for the buffer, and so that poll's word holds until the call is received
	buffer    []uint64
	wake      *os.File // the end of a pipe that Close closes
	waker     *os.File

	open   sync.RWMutex // held for writing to close the descriptor
	fd     int          // -1: closed
	answer int          // size of an answer in words
}

// A Call is a system call that waits for its answer: exactly one of Continue, Return and Fail.
type Call struct {
	ID      uint64
	Thread  int        // its id as the receiver's pid namespace has it, 0 if it has none there
	Arch    specs.Arch // "" for one that the spec has no name for
	Number  uint32
	Args    [6]uint64
	Address uint64 // of the instruction that made the call

	listener *Listener
}

// Notify takes the descriptor of a listener, which [Filter.Load] gives or a process sends, and
// receives by it. It owns the descriptor from then on, if it returns no error.
//
// Answer from another process than the filtered one, or from threads that the filter is not on: who
// is to answer must not wait for an answer.
func Notify(listener int) (*Listener, error) {
	call, answer, err := sys.SeccompSizes()
	if err != nil {
		return nil, fmt.Errorf("receive notifications of seccomp: %w (they need Linux 5.0)", err)
	}
	wake, waker, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	sys.WakeSeccompCallsHere(listener)
	return &Listener{buffer: make([]uint64, (call+7)/8), wake: wake, waker: waker, fd: listener, answer: (answer + 7) / 8}, nil
}

// Receive waits for the next call. It gives io.EOF once no process has the filter any more (on
// Linux before 5.9 it waits on), and os.ErrClosed after Close.
func (l *Listener) Receive() (*Call, error) {
	l.receiving.Lock()
	defer l.receiving.Unlock()
	for {
		l.open.RLock()
		fd := l.fd
		l.open.RUnlock()
		if fd < 0 {
			return nil, os.ErrClosed
		}
		// SECCOMP_IOCTL_NOTIF_RECV would wait for ever once the last process has gone (until 6.11),
		// and neither a close nor O_NONBLOCK ends its wait. Close waits until we are through.
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(l.wake.Fd()), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err == unix.EINTR {
			continue
		} else if err != nil {
			return nil, os.NewSyscallError("poll", err)
		}
		switch {
		case fds[1].Revents != 0:
			return nil, os.ErrClosed
		case fds[0].Revents&unix.POLLIN != 0:
		case fds[0].Revents&(unix.POLLERR|unix.POLLNVAL) != 0:
			return nil, errors.New("receive a notification of seccomp: the descriptor is no listener")
		default:
			return nil, io.EOF
		}
		n, err := sys.ReceiveSeccompCall(fd, l.buffer)
		switch err {
		case nil:
		case unix.EINTR, unix.ENOENT: // it was killed before we had it
			continue
		default:
			return nil, fmt.Errorf("receive a notification of seccomp: %w", err)
		}
		c := &Call{ID: n.ID, Thread: int(n.Pid), Number: n.Number, Args: n.Args, Address: n.Address, listener: l}
		if a := archOf(n.Arch, n.Number); a != nil {
			c.Arch = a.name
		}
		return c, nil
	}
}

// Close closes the listener: Receive ends, and all calls that wait or are still to come get ENOSYS.
func (l *Listener) Close() error {
	l.waker.Close()
	l.receiving.Lock()
	defer l.receiving.Unlock()
	l.open.Lock()
	defer l.open.Unlock()
	if l.fd < 0 {
		return os.ErrClosed
	}
	fd := l.fd
	l.fd = -1
	l.wake.Close()
	return os.NewSyscallError("close", unix.Close(fd))
}

// Continue has the kernel make the call, as if it had been allowed.
//
// It is no way to decide by what the arguments point to: another thread can change that after it
// was looked at. A filter that is to keep a program from something has to refuse it by what the
// registers hold, or make the call in its place.
func (c *Call) Continue() error {
	return c.answer(sys.SeccompAnswer{Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

// Return has the call return a value, without being made.
func (c *Call) Return(value int64) error { return c.answer(sys.SeccompAnswer{Value: value}) }

// Fail has the call fail with an errno, without being made.
func (c *Call) Fail(errno syscall.Errno) error {
	return c.answer(sys.SeccompAnswer{Error: -int32(errno)})
}

func (c *Call) answer(a sys.SeccompAnswer) error {
	l := c.listener
	l.open.RLock()
	defer l.open.RUnlock()
	if l.fd < 0 {
		return os.ErrClosed
	}
	a.ID = c.ID
	switch err := sys.AnswerSeccompCall(l.fd, make([]uint64, l.answer), a); err {
	case nil:
		return nil
	case unix.ENOENT, unix.EINPROGRESS:
		return ErrGone
	default:
		return fmt.Errorf("answer %s: %w", c, err)
	}
}

// Waits reports whether the call still waits. What was found out by Thread before is of that thread
// only if the call waits afterwards: else the number may have become another's.
func (c *Call) Waits() bool {
	c.listener.open.RLock()
	defer c.listener.open.RUnlock()
	return c.listener.fd >= 0 && sys.SeccompCallWaits(c.listener.fd, c.ID)
}

// ReadMemory fills p from an address of the process that made the call, and says how many bytes it
// got: fewer where the memory ends. It takes the right to trace the process (ptrace(2)). The
// process can change the memory at any time; see [Call.Continue].
func (c *Call) ReadMemory(p []byte, address uint64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if address != uint64(uintptr(address)) {
		return 0, unix.EFAULT
	}
	n, err := unix.ProcessVMReadv(c.Thread, []unix.Iovec{iovec(p)}, []unix.RemoteIovec{{Base: uintptr(address), Len: len(p)}}, 0)
	if !c.Waits() {
		return 0, ErrGone
	}
	return max(n, 0), os.NewSyscallError("process_vm_readv", err)
}

// ReadString reads a string that ends with a zero byte, as paths do. A longer one than most is cut
// off there.
func (c *Call) ReadString(address uint64, most int) (string, error) {
	const page = 4096 // the least there is: what lies behind its end may not be readable
	var text []byte
	for len(text) < most {
		part := make([]byte, min(most-len(text), page-int(address%page)))
		n, err := c.ReadMemory(part, address)
		if err != nil {
			return "", err
		}
		before, _, ended := strings.Cut(string(part[:n]), "\x00")
		text = append(text, before...)
		if ended || n < len(part) {
			break
		}
		address += uint64(n)
	}
	return string(text), nil
}

func iovec(p []byte) unix.Iovec {
	v := unix.Iovec{Base: &p[0]}
	v.SetLen(len(p))
	return v
}

// Name is the name of the call, "" for a number that is no system call's. It is looked up in a long
// table: who counts many calls does so by Arch and Number.
func (c *Call) Name() string {
	name, _ := SyscallName(c.Arch, c.Number)
	return name
}

// String is the call's name, or its number and architecture.
func (c *Call) String() string {
	if name := c.Name(); name != "" {
		return name
	}
	return fmt.Sprintf("call %d of %s", c.Number, c.Arch)
}
