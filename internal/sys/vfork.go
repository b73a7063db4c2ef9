//go:build amd64 || arm64

//lint:file-ignore U1000 the assembly uses the constants, by way of go_asm.h, and vforkChild

package sys

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/berth-runtime/berth/internal/start/openfiles"
	"golang.org/x/sys/unix"
)

// Vfork clones a child that executes a descriptor's file. It does what
// syscall.ForkExec does, with some seventy system calls less: that asks the kernel
// for each signal's default by itself, and hears from the child by a pipe.
//
// Until its execve the child has our memory, while the thread that made it waits
// (CLONE_VFORK). It runs no Go: assembly makes the system calls of a list, uses no
// stack, and so needs nothing that the runtime knows of. No handler of ours can run
// in it either: all signals are blocked around the clone, and the kernel has put them
// to their defaults (CLONE_CLEAR_SIGHAND, Linux 5.5) before the child unblocks them.
// They are blocked for our own sake, too: a clone that a signal comes to begins
// again, and Go may send one every 20 µs (go.dev/issue/5517).
type Vfork struct {
	Flags  uintptr // CLONE_NEW*, but CLONE_NEWUSER
	Cgroup int     // a directory of the unified hierarchy to clone into, or -1
	// Files are the child's descriptors, from 0 on. All others are to be close-on-exec.
	Files []uintptr
	// Image is what it executes; it may have any number.
	Image int
	Name  string
	// Await, if not nil, is called where the child stands still before its execve. It waits
	// until done can be read, or fails: the child is killed then, and Start fails with that.
	Await func(done int) error
}

// Start returns the child's name in /proc until it executes something else, its pid
// and a pidfd of it, or ErrNoClone3.
func (v *Vfork) Start() (comm string, pid, pidfd int, err error) {
	b := &vforkBlock{pidfd: -1, all: ^uint64(0)}
	b.clone = cloneArgs{
		flags: uint64(v.Flags) | unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_CLEAR_SIGHAND | unix.CLONE_PIDFD,
		pidfd: uint64(uintptr(unsafe.Pointer(&b.pidfd))), exitSignal: uint64(unix.SIGCHLD),
	}
	if v.Cgroup >= 0 {
		b.clone.flags |= unix.CLONE_INTO_CGROUP
		b.clone.cgroup = uint64(v.Cgroup)
	}
	calls := make([]vforkCall, 0, len(v.Files)+8)
	calls, image := v.arrange(calls)
	if limit := callersLimit(); limit != nil {
		b.limit = *limit
		calls = append(calls, vforkCall{unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, addressOf(&b.limit), 0})
	}
	comm = strconv.Itoa(image)
	copy(b.path[:], "/proc/self/fd/"+comm)
	copy(b.name[:len(b.name)-1], v.Name)
	b.argv[0] = &b.name[0]
	calls = append(calls,
		vforkCall{unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, addressOf(&b.old), 0, unsafe.Sizeof(b.old)},
		vforkCall{unix.SYS_EXECVE, addressOf(&b.path), addressOf(&b.argv), addressOf(&b.argv[1]), 0}) // no environment
	b.calls = &calls[0]

	// Nobody may have a descriptor then that is not close-on-exec yet.
	syscall.ForkLock.Lock()
	if v.Await == nil {
		pid = vfork(b)
	} else {
		guard := newVforkGuard(b, v.Await)
		pid = vforkGuarded(b)
		err = guard.end()
	}
	syscall.ForkLock.Unlock()
	if err != nil {
		return "", 0, -1, err
	}
	if pid < 0 {
		if errno := unix.Errno(-pid); errno != unix.ENOSYS {
			return "", 0, -1, os.NewSyscallError("clone3", errno)
		}
		return "", 0, -1, ErrNoClone3
	}
	if b.failed != 0 {
		_, _ = WaitID(unix.P_PIDFD, int(b.pidfd), 0)
		unix.Close(int(b.pidfd))
		call := "set up the descriptors"
		if b.at == unix.SYS_EXECVE {
			call = "execve"
		}
		return "", 0, -1, fmt.Errorf("%s: %w", call, unix.Errno(-b.failed))
	}
	return comm, pid, int(b.pidfd), nil
}

// arrange gives each descriptor its number in the child, and tells which the image
// has then. What would be overwritten before its turn is moved out of the way.
func (v *Vfork) arrange(calls []vforkCall) ([]vforkCall, int) {
	free := uintptr(max(len(v.Files), v.Image))
	for _, fd := range v.Files {
		free = max(free, fd)
	}
	move := func(fd uintptr) uintptr {
		free++
		calls = append(calls, vforkCall{unix.SYS_DUP3, fd, free, unix.O_CLOEXEC, 0})
		return free
	}
	image := uintptr(v.Image)
	if v.Image < len(v.Files) {
		image = move(image)
	}
	from := make([]uintptr, len(v.Files))
	for i, fd := range v.Files {
		if from[i] = fd; fd < uintptr(i) {
			from[i] = move(fd)
		}
	}
	for i, fd := range from {
		if to := uintptr(i); fd == to {
			calls = append(calls, vforkCall{unix.SYS_FCNTL, fd, unix.F_SETFD, 0, 0})
		} else {
			calls = append(calls, vforkCall{unix.SYS_DUP3, fd, to, 0, 0})
		}
	}
	return calls, int(image)
}

// callersLimit is the limit of open files that the child is to have, nil where it is
// what we have ourselves: package syscall has raised ours to one below the hard one
// when it began. If it is something else by now, somebody wants it so.
func callersLimit() *unix.Rlimit {
	soft, hard, ok := openfiles.First()
	if !ok || hard == 0 || soft >= hard-1 {
		return nil
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil || now.Cur != hard-1 || now.Max != hard {
		return nil
	}
	return &unix.Rlimit{Cur: soft, Max: hard}
}

func addressOf[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// vforkBlock is what parent and child share. It is on the heap, since the assembly is
// given it, and there nothing moves; so whatever is given to the child by its address
// is in it.
type vforkBlock struct {
	clone cloneArgs
	calls *vforkCall // the child's; the last is execve
	all   uint64     // the signals to block meanwhile
	old   uint64     // those that were blocked
	pidfd int32
	limit unix.Rlimit
	path  [32]byte // of the image
	name  [24]byte // argv[0]
	argv  [2]*byte
	// failed is what the call with the number at has returned in the child.
	failed int64
	at     int64
}

// cloneArgs is struct clone_args of clone(2), as of Linux 5.7.
type cloneArgs struct {
	flags, pidfd uint64
	_            [2]uint64 // child_tid, parent_tid
	exitSignal   uint64
	_            [5]uint64 // stack, stack_size, tls, set_tid, set_tid_size
	cgroup       uint64
}

// vforkCall is a system call: its number and its arguments.
type vforkCall struct{ nr, a1, a2, a3, a4 uintptr }

// What the assembly calls itself, for go_asm.h.
const (
	sysClone3        = unix.SYS_CLONE3
	sysExitGroup     = unix.SYS_EXIT_GROUP
	sysRtSigprocmask = unix.SYS_RT_SIGPROCMASK
	sigSetmask       = unix.SIG_SETMASK
	maxErrno         = 4095
)

// vfork blocks all signals, clones, and unblocks them. It returns the child's pid or
// an errno below 0.
func vfork(b *vforkBlock) int

// vforkChild makes the child's calls, and does not return. vfork goes there.
func vforkChild(b *vforkBlock)
