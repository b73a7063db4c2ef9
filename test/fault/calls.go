//go:build linux && amd64

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// call is one that is counted.
type call struct {
	process int
	nr      uint64
	name    string
	n       int
	step    int    // its number among the calls of all that change something, 0 for none of these
	text    string // its path, where it has one
}

func (c *call) String() string { return fmt.Sprintf("%d:%s:%d %s", c.process, c.name, c.n, c.text) }

// count returns the call that a process is about to make, nil for one that is not counted.
func (t *tracer) count(tid int, p *process, regs *unix.PtraceRegs) *call {
	nr := regs.Orig_rax
	if keeps(nr, regs) {
		p.keeper = true
	}
	if p.keeper {
		return nil
	}
	if !p.init && (runtimes(nr, regs) || wakes(tid, nr, regs)) {
		return nil
	}
	c := &call{process: p.number, nr: nr, name: name(nr, regs)}
	p.counts[c.name]++
	c.n = p.counts[c.name]
	if t.record != nil || t.fault.text != "" {
		c.text = pathOf(tid, nr, regs)
	}
	if t.isStep(p, c, regs) {
		t.steps++
		c.step = t.steps
	}
	return c
}

// isStep reports whether a call is one of the steps.
func (t *tracer) isStep(p *process, c *call, regs *unix.PtraceRegs) bool {
	if !t.kept {
		return c.changes(regs)
	}
	if p.own {
		return p.parent != nil && p.parent.keeper
	}
	return c.changes(regs) && p.ofKept()
}

// ofKept reports whether a process was made by one that a keeper has.
func (p *process) ofKept() bool {
	for ; p != nil; p = p.parent {
		if p.own {
			return p.parent != nil && p.parent.keeper
		}
	}
	return false
}

// keeps reports whether a call is that by which a shim's keeper makes the shim: their descriptors
// are the same, but not their memory.
func keeps(nr uint64, regs *unix.PtraceRegs) bool {
	return nr == unix.SYS_CLONE && regs.Rdi&(unix.CLONE_FILES|unix.CLONE_VM) == unix.CLONE_FILES
}

// wakes reports whether a call is the Go runtime's waking of a thread of its own that waits for
// descriptors.
func wakes(tid int, nr uint64, regs *unix.PtraceRegs) bool {
	if nr != unix.SYS_READ && nr != unix.SYS_WRITE || regs.Rdx != 8 {
		return false
	}
	target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, int32(regs.Rdi)))
	return target == "anon_inode:[eventfd]"
}

// runtimes reports whether a call is one that the Go runtime makes on its own behalf, when and how
// often it likes, or one that can't fail.
func runtimes(nr uint64, regs *unix.PtraceRegs) bool {
	switch nr {
	case unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
		unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MPROTECT, unix.SYS_BRK, unix.SYS_GETTID, unix.SYS_GETPID, unix.SYS_GETPPID,
		unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY,
		unix.SYS_TGKILL, unix.SYS_ARCH_PRCTL, unix.SYS_SET_ROBUST_LIST, unix.SYS_SET_TID_ADDRESS, unix.SYS_RSEQ, unix.SYS_GETRANDOM,
		unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_RESTART_SYSCALL, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID,
		unix.SYS_CLOCK_GETTIME, unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_DELETE, unix.SYS_SETITIMER, unix.SYS_MINCORE,
		unix.SYS_MEMBARRIER, unix.SYS_UMASK:
		return true
	case unix.SYS_CLONE:
		return regs.Rdi&unix.CLONE_THREAD != 0
	}
	return false
}

// name is the name of a call: a Program's, or one of those that the Go side of the engine makes
// besides. One that is made again until it has the answer has a name of its own: the numbers of
// others don't depend on how often that was.
func name(nr uint64, regs *unix.PtraceRegs) string {
	switch nr {
	case unix.SYS_WAITID:
		if regs.Rdi == unix.P_PID {
			return "waitid_pid"
		}
	case unix.SYS_NEWFSTATAT:
		return "newfstatat"
	case unix.SYS_FSTAT:
		return "fstat"
	case unix.SYS_STATFS:
		return "statfs"
	case unix.SYS_RENAMEAT:
		return "renameat"
	case unix.SYS_BIND:
		return "bind"
	case unix.SYS_LISTEN:
		return "listen"
	case unix.SYS_GETRLIMIT:
		return "getrlimit"
	case unix.SYS_RMDIR:
		return "rmdir"
	case unix.SYS_WAIT4:
		return "wait4"
	case unix.SYS_RECVMSG:
		return "recvmsg"
	case unix.SYS_PPOLL:
		return "ppoll"
	case unix.SYS_POLL:
		return "poll"
	case unix.SYS_GETDENTS64:
		return "getdents64"
	case unix.SYS_READLINK:
		return "readlink"
	case unix.SYS_VFORK:
		return "vfork"
	}
	return (&program.Op{Nr: uint32(nr)}).Name()
}

// changes reports whether a call has an effect outside of the process that makes it: after any
// other, a kill leaves the same as after the one before. What a process holds open the kill itself
// gives up.
func (c *call) changes(regs *unix.PtraceRegs) bool {
	switch c.nr {
	case unix.SYS_OPENAT:
		return regs.Rdx&(unix.O_CREAT|unix.O_TRUNC) != 0
	case unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_CLOSE, unix.SYS_CLOSE_RANGE, unix.SYS_NEWFSTATAT, unix.SYS_FSTAT, unix.SYS_STATFS, unix.SYS_FCNTL, unix.SYS_READLINKAT,
		unix.SYS_READLINK, unix.SYS_OPENAT2, unix.SYS_OPEN_TREE, unix.SYS_PRLIMIT64, unix.SYS_GETRLIMIT, unix.SYS_GETDENTS64, unix.SYS_LSEEK, unix.SYS_FACCESSAT2,
		unix.SYS_PRCTL, unix.SYS_POLL, unix.SYS_PPOLL, unix.SYS_PIDFD_OPEN, unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_DUP3, unix.SYS_SOCKET, unix.SYS_SOCKETPAIR,
		unix.SYS_MEMFD_CREATE, unix.SYS_PIPE2, unix.SYS_RECVMSG, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_CHDIR, unix.SYS_FCHDIR, unix.SYS_CAPSET,
		unix.SYS_SETRESUID, unix.SYS_SETRESGID, unix.SYS_SETGROUPS, unix.SYS_RT_SIGACTION, unix.SYS_SETSID, unix.SYS_UMASK, unix.SYS_SECCOMP, unix.SYS_MOUNT_SETATTR,
		unix.SYS_WAIT4, unix.SYS_BPF, unix.SYS_IOCTL, unix.SYS_READV, unix.SYS_UNAME,
		unix.SYS_GETSOCKOPT, unix.SYS_SETSOCKOPT, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_RECVFROM, unix.SYS_INOTIFY_INIT1, unix.SYS_WAITID:
		return false
	}
	return true
}

// endsItself reports whether a call does not return.
func endsItself(nr uint64) bool { return nr == unix.SYS_EXIT_GROUP || nr == unix.SYS_EXIT }

// pathOf reads the path, or what stands for one, of a call.
func pathOf(tid int, nr uint64, regs *unix.PtraceRegs) string {
	at := regs.Rsi
	switch nr {
	case unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_FSTAT, unix.SYS_FCNTL, unix.SYS_GETDENTS64, unix.SYS_FLOCK:
		target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, int32(regs.Rdi)))
		if nr == unix.SYS_FLOCK && regs.Rsi&unix.LOCK_UN != 0 {
			target += " unlock"
		}
		return target
	case unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_NEWFSTATAT, unix.SYS_READLINKAT, unix.SYS_MKNODAT,
		unix.SYS_FCHMODAT, unix.SYS_FACCESSAT2, unix.SYS_FACCESSAT, unix.SYS_OPEN_TREE, unix.SYS_RENAMEAT, unix.SYS_UTIMENSAT, unix.SYS_STATX,
		unix.SYS_FCHOWNAT, unix.SYS_MOUNT, unix.SYS_WRITE:
	case unix.SYS_OPEN, unix.SYS_READLINK, unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_UNLINK, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_STATFS,
		unix.SYS_EXECVE, unix.SYS_CHDIR, unix.SYS_CHROOT, unix.SYS_UMOUNT2, unix.SYS_MEMFD_CREATE, unix.SYS_FSOPEN, unix.SYS_SYMLINKAT, unix.SYS_ACCESS:
		at = regs.Rdi
	case unix.SYS_FSCONFIG:
		at = regs.Rdx
	default:
		return ""
	}
	if at == 0 {
		return ""
	}
	buf := make([]byte, 256)
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}
	// Not over the end of a page, behind which there may be nothing.
	most := min(len(buf), int(4096-at%4096))
	n, err := unix.ProcessVMReadv(tid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: most}}, 0)
	if err != nil {
		return ""
	}
	text := buf[:n]
	if nr == unix.SYS_WRITE {
		text = text[:min(len(text), int(regs.Rdx))]
	}
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '.'
		}
		return r
	}, string(text))
}
