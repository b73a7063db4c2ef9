//go:build linux && amd64

package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tracer follows one program and what it starts.
type tracer struct {
	fault  fault
	record *bufio.Writer
	pids   *os.File
	// listener is told of calls before they are made; nil for nobody.
	listener *listener
	root     int
	program  string          // what the root executes
	threads  map[int]*thread // by id
	started  int             // processes so far
	steps    int             // calls so far that change something
	kept     bool            // steps are those of the process that a keeper has
	follows  bool            // the end of the root is not the end
	killed   int             // the process that was killed after the last of its steps
	ending   bool            // the program is over; who is left is let go
}

// thread is one that is traced.
type thread struct {
	process *process
	inCall  bool
	fails   bool // the call that it is in is not made
	kills   bool
	born    bool // it has made its first stop
	let     bool // it is to be let go at its next stop for SIGSTOP
}

// process is a thread group.
type process struct {
	number int
	pid    int
	parent *process
	own    bool           // it has executed the engine itself, and is not just a fork of what does
	keeper bool           // it is a shim's keeper
	init   bool           // it has executed an init of the engine's, of which each call is meant
	counts map[string]int // calls by name
}

const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
	unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_EXITKILL

func (t *tracer) run(args []string) (unix.WaitStatus, error) {
	pid, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{
		Env: os.Environ(), Files: inherited(), Sys: &syscall.SysProcAttr{Ptrace: true},
	})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", args[0], err)
	}
	var status unix.WaitStatus
	// Who loses its parent comes to this process, and is not let out of sight before it is settled.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("become a subreaper: %w", err)
	}
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
		return 0, fmt.Errorf("wait for its first stop: %w", err)
	}
	if err := unix.PtraceSetOptions(pid, options); err != nil {
		return 0, fmt.Errorf("set the options of ptrace: %w", err)
	}
	t.root = pid
	t.program, _ = os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	root := t.newProcess(pid, nil)
	root.own = true
	t.threads[pid] = &thread{process: root, born: true}
	if err := unix.PtraceSyscall(pid, 0); err != nil {
		return 0, fmt.Errorf("let it go on: %w", err)
	}
	if t.follows {
		unix.Close(0)
		unix.Close(1)
	}
	return t.follow()
}

// inherited are the descriptors that this process was given: the program gets them too, by the same
// numbers.
func inherited() []uintptr {
	files := []uintptr{0, 1, 2}
	for fd := 3; fd < 16; fd++ {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 {
			break
		}
		files = append(files, uintptr(fd))
	}
	return files
}

func (t *tracer) newProcess(pid int, parent *process) *process {
	p := &process{number: t.started, pid: pid, parent: parent, counts: map[string]int{}}
	t.started++
	if t.pids != nil {
		fmt.Fprintln(t.pids, pid)
	}
	return p
}

// follow handles stops until the program has ended and nobody is traced any more.
func (t *tracer) follow() (result unix.WaitStatus, err error) {
	for len(t.threads) > 0 {
		var status unix.WaitStatus
		tid, err := unix.Wait4(-1, &status, unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		if err == unix.ECHILD {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("wait for a stop: %w", err)
		}
		if status.Exited() || status.Signaled() {
			delete(t.threads, tid)
			if tid == t.root {
				result = status
			}
			if tid == t.root && !t.follows || tid == t.killed {
				t.letGo()
			}
			continue
		}
		t.stopped(tid, status)
	}
	return result, nil
}

// stopped handles one stop and lets the thread go on. A thread may be killed at any time; what
// fails then shows as its end.
func (t *tracer) stopped(tid int, status unix.WaitStatus) {
	th := t.threads[tid]
	if th == nil {
		// A child may make its first stop before its parent's event has come.
		th = &thread{}
		t.threads[tid] = th
	}
	signal := 0
	switch stop := status.StopSignal(); {
	case stop == unix.SIGTRAP|0x80:
		t.call(tid, th)
	case stop == unix.SIGTRAP && status.TrapCause() > 0:
		if t.event(tid, th, status.TrapCause()) {
			return // it was let go
		}
	case stop == unix.SIGSTOP && (th.let || t.ending):
		_ = unix.PtraceDetach(tid)
		delete(t.threads, tid)
		return
	case stop == unix.SIGSTOP:
		// The first stop of who is traced from birth: nobody here is sent one by others.
		th.born = true
		if th.process == nil {
			return // it is held until its parent's event says which process it is
		}
	default:
		signal = int(stop)
	}
	t.resume(tid, signal)
}

// resume lets a thread go on to its next call, or where nobody asks for calls to what it executes
// or begins.
func (t *tracer) resume(tid, signal int) {
	if t.listener != nil && t.listener.quiet {
		_ = unix.PtraceCont(tid, signal)
	} else {
		_ = unix.PtraceSyscall(tid, signal)
	}
}

// event handles births and execve. It reports whether the thread has been let go.
func (t *tracer) event(tid int, th *thread, cause int) bool {
	switch cause {
	case unix.PTRACE_EVENT_CLONE, unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK:
		message, err := unix.PtraceGetEventMsg(tid)
		if err != nil {
			return false
		}
		child := t.threads[int(message)]
		if child == nil {
			child = &thread{}
			t.threads[int(message)] = child
		}
		child.process = th.process
		if cause != unix.PTRACE_EVENT_CLONE {
			child.process = t.newProcess(int(message), th.process)
			child.process.own = th.process.keeper
		}
		if child.born {
			t.resume(int(message), 0)
		}
	case unix.PTRACE_EVENT_EXEC:
		// All other threads are gone, and this one has the leader's id.
		th.inCall = true
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", tid))
		switch {
		case err != nil:
			return false // it has been killed
		case strings.HasPrefix(exe, "/memfd:berth"):
			th.process.init, th.process.own = true, false
		case exe != t.program:
			t.listener.tell("exec", th.process.number, tid, exe)
			if th.let {
				// A SIGSTOP is under way. It can't be waited for: a container may be frozen before
				// it comes. SIGCONT takes it back (signal(7)).
				_ = unix.Tgkill(group(tid), tid, unix.SIGCONT)
			}
			_ = unix.PtraceDetach(tid)
			delete(t.threads, tid)
			return true
		default:
			th.process.own = true
		}
	}
	return false
}

// call handles the stop before a system call, or the one after it.
func (t *tracer) call(tid int, th *thread) {
	if th.inCall {
		th.inCall = false
		if th.fails {
			th.fails = false
			var regs unix.PtraceRegs
			if unix.PtraceGetRegs(tid, &regs) == nil {
				regs.Rax = -uint64(t.fault.errno)
				_ = unix.PtraceSetRegs(tid, &regs)
			}
		}
		if th.kills {
			th.kills = false
			t.killAfter(th.process)
		}
		return
	}
	th.inCall = true
	if th.process == nil {
		return
	}
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(tid, &regs) != nil {
		return
	}
	c := t.count(tid, th.process, &regs)
	if c == nil {
		return
	}
	if t.record != nil {
		step := ""
		if c.changes(&regs) {
			step = "step"
		}
		fmt.Fprintf(t.record, "%d:%s:%d\t%s\t%s\n", c.process, c.name, c.n, step, c.text)
	}
	if t.listener.hears(c) {
		c.text = pathOf(tid, c.nr, &regs)
		t.listener.tell("call", c.process, th.process.pid, c.name, c.n, c.text)
	}
	if !t.fault.is(c) {
		return
	}
	if t.fault.hit != "" {
		if c.text == "" {
			c.text = pathOf(tid, c.nr, &regs)
		}
		_ = os.WriteFile(t.fault.hit, []byte(c.String()), 0o644)
	}
	if t.fault.errno != 0 {
		th.fails = true
		regs.Orig_rax = ^uint64(0) // no such call: nothing happens
		_ = unix.PtraceSetRegs(tid, &regs)
	}
	th.kills = t.fault.kill >= 0 || t.fault.step > 0
	if th.kills && (t.fault.before || endsItself(regs.Orig_rax)) {
		// There is no stop after it.
		t.killAfter(th.process)
	}
}

// killAfter kills the process that is to be killed after a call of the given one.
func (t *tracer) killAfter(p *process) {
	if t.fault.step == 0 {
		t.killProcess(t.fault.kill)
		return
	}
	for !p.own && p.parent != nil {
		p = p.parent
	}
	if t.steps >= t.fault.last() {
		t.killed = p.pid
	}
	t.killProcess(p.number)
}

func (t *tracer) killProcess(number int) {
	for _, th := range t.threads {
		if th.process != nil && th.process.number == number {
			_ = unix.Kill(th.process.pid, unix.SIGKILL)
			return
		}
	}
}

// letGo ends the tracing of who is left when the program is over.
func (t *tracer) letGo() {
	t.ending = true
	for tid, th := range t.threads {
		t.ask(tid, th)
	}
}

// ask has a thread stop, which is when it can be let go. The stop itself is suppressed; a call that
// it waits in begins anew.
func (t *tracer) ask(tid int, th *thread) {
	if !th.born {
		return // its first stop is still to come
	}
	if th.process == nil { // it is held at its birth
		_ = unix.PtraceDetach(tid)
		delete(t.threads, tid)
		return
	}
	th.let = true
	if unix.Tgkill(group(tid), tid, unix.SIGSTOP) != nil {
		delete(t.threads, tid)
	}
}

// group is the thread group of a thread.
func group(tid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Tgid:"); ok {
			var pid int
			_, _ = fmt.Sscan(value, &pid)
			return pid
		}
	}
	return tid
}
