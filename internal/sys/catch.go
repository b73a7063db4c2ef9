//go:build amd64 || arm64

package sys

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CatchSignals makes signals readable: each one that comes is a byte with its
// number in the pipe whose reading end is returned, which does not block.
//
// It does what os/signal.Notify does at a fraction of the cost: there each
// signal that is asked for takes two goroutines, on two threads, a turn (about
// 20 µs on a busy machine, for 47 signals), here one system call. The handler is
// assembly that writes to the pipe; it needs nothing of Go's runtime, and so can
// run on any of its threads at any point. What comes when 64 Ki signals are
// unread is lost. It can be called once, and nothing takes it back: signals given
// to it are not to be asked for by os/signal, which would not get them.
func CatchSignals(signals ...unix.Signal) (int, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return -1, fmt.Errorf("make a pipe for signals: %w", err)
	}
	caughtPipe, caughtPID = int32(ends[1]), int32(unix.Getpid())
	action := sigaction{
		handler: catchHandler(), restorer: catchRestorer(),
		// On the stack that Go gives each of its threads for it (sigaltstack(2)): the
		// one that is interrupted may be a goroutine's, with a few hundred bytes left.
		flags: saOnStack | saRestart | saRestorer,
		mask:  ^uint64(0),
	}
	for _, s := range signals {
		if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, unsafe.Sizeof(action.mask), 0, 0); errno != 0 {
			return -1, fmt.Errorf("catch %s: %w", unix.SignalName(s), errno)
		}
	}
	return ends[0], nil
}

// caughtPipe is where the handler writes to, if it runs in the process caughtPID. A child
// that shares our memory until its execve has its own descriptors already, and
// syscall.ForkExec takes only those handlers from it that Go has installed: SIGTSTP,
// SIGTTIN, SIGTTOU and SIGCONT are not among them. What a terminal sends, it sends to
// both of us, so that nothing is lost by leaving it to the parent.
//
//lint:ignore U1000 the assembly reads them
var caughtPipe, caughtPID int32

// sigaction is the kernel's struct on the machines of this file; that of
// sigaction(2) is the C library's.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

const (
	saRestorer = 0x04000000
	saOnStack  = 0x08000000
	saRestart  = 0x10000000
)

// DefaultSignal puts a caught signal back to what it does by default, until again is called.
func DefaultSignal(s unix.Signal) (again func(), err error) {
	var was, none sigaction
	set := func(action, old *sigaction) unix.Errno {
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(action)), uintptr(unsafe.Pointer(old)), unsafe.Sizeof(none.mask), 0, 0)
		return errno
	}
	if errno := set(&none, &was); errno != 0 {
		return nil, fmt.Errorf("stop catching %s: %w", unix.SignalName(s), errno)
	}
	return func() { set(&was, nil) }, nil
}

// catchHandler and catchRestorer give the addresses of instructions that are
// never called from Go.
func catchHandler() uintptr
func catchRestorer() uintptr
