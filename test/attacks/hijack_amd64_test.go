package attacks

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// hijacked is a process that is made to call what the attacker likes, as if he had got hold of it
// by some flaw. What his calls need to point to it has in its environment already.
type hijacked struct {
	t   *testing.T
	pid int
	env []byte
	at  uintptr // of the environment
}

func hijack(t *testing.T, pid int) *hijacked {
	t.Helper()
	h := &hijacked{t: t, pid: pid}
	var err error
	h.env, err = os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	check(t, err)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	check(t, err)
	// The name may have blanks in it. Behind it come the fields from the third on; env_start is the
	// 50th (proc(5)).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	at, err := strconv.ParseUint(fields[50-3], 10, 64)
	check(t, err)
	h.at = uintptr(at)
	return h
}

// pointer is where a text of the environment is, from its beginning on.
func (h *hijacked) pointer(text string) uintptr {
	h.t.Helper()
	i := bytes.Index(h.env, []byte("="+text+"\x00"))
	if i < 0 {
		h.t.Fatalf("the process has no %q in its environment", text)
	}
	return h.at + uintptr(i) + 1
}

func (h *hijacked) threads() (tids []int) {
	h.t.Helper()
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", h.pid))
	check(h.t, err)
	for _, name := range names {
		tid, err := strconv.Atoi(filepath.Base(name))
		check(h.t, err)
		tids = append(tids, tid)
	}
	return tids
}

// call has a thread, which waits in some call, make another, and go on waiting. All of ptrace has
// to come from one thread of ours.
func (h *hijacked) call(tid int, nr uintptr, args ...uintptr) (result uintptr, failed error) {
	h.t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must := func(what string, err error) {
		h.t.Helper()
		if err != nil {
			h.t.Fatalf("%s thread %d: %v", what, tid, err)
		}
	}
	stopped := func() {
		h.t.Helper()
		var status unix.WaitStatus
		if _, err := unix.Wait4(tid, &status, unix.WALL, nil); err != nil || !status.Stopped() {
			h.t.Fatalf("thread %d: %v, status %#x", tid, err, status)
		}
	}
	var kept unix.PtraceRegs
	for end := time.Now().Add(harness.Deadline); ; {
		must("seize", unix.PtraceSeize(tid))
		must("interrupt", unix.PtraceInterrupt(tid))
		stopped()
		must("read the registers of", unix.PtraceGetRegs(tid, &kept))
		code := make([]byte, 2)
		_, err := unix.PtracePeekText(tid, uintptr(kept.Rip-2), code)
		if must("read the code of", err); string(code) == "\x0f\x05" { // SYSCALL
			break
		}
		// It is just doing something of the Go runtime's.
		must("let go of", unix.PtraceDetach(tid))
		if time.Now().After(end) {
			h.t.Fatalf("thread %d does not come to a system call", tid)
		}
	}
	regs := kept
	regs.Rip -= 2
	regs.Rax, regs.Orig_rax = uint64(nr), ^uint64(0) // so that the kernel does not begin its own call anew
	for i, register := range []*uint64{&regs.Rdi, &regs.Rsi, &regs.Rdx, &regs.R10, &regs.R8, &regs.R9} {
		if *register = 0; i < len(args) {
			*register = uint64(args[i])
		}
	}
	must("set the registers of", unix.PtraceSetRegs(tid, &regs))
	must("step", unix.PtraceSingleStep(tid))
	stopped()
	must("read the registers of", unix.PtraceGetRegs(tid, &regs))
	must("set the registers of", unix.PtraceSetRegs(tid, &kept))
	must("let go of", unix.PtraceDetach(tid))
	if value := int64(regs.Rax); value < 0 {
		return 0, unix.Errno(-value)
	}
	return uintptr(regs.Rax), nil
}

// confined is a runtime in the foreground of a container, and what it is to be hijacked for.
type confined struct {
	*hijacked
	o          *outside
	file, made string // the host's, and one to be made
	state      string // a file of its own container
	running    *harness.Running
	verb       string
}

// stay runs the command in the foreground, and gives it what an attacker wants in its environment.
func stay(t *testing.T, b *harness.Box, o *outside, c *harness.Container, confines bool, verb string, words ...string) *confined {
	t.Helper()
	v := &confined{verb: verb, o: o, file: filepath.Join(o.dir, "file"), made: filepath.Join(o.dir, "made"), state: filepath.Join(b.Root, c.ID, "config.json")}
	cmd := c.Command(verb, nil, words...)
	cmd.Env = []string{"A=" + v.file, "B=" + v.made, "C=" + v.state, "D=/bin/true", "E=tmpfs"}
	// Not our own child: who waits for a child's end is told of its stops too, and takes them from
	// who traces it.
	cmd.Wrap = []string{"/bin/sh", "-c", `"$@"; exit $?`, "sh"}
	v.running = cmd.Start()
	pid := 0
	// It has nothing left to do from when it waits for the process.
	wait.Until(t, "berth "+verb+" waits", func() bool {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", v.running.PID))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(children)))
		return pid > 0 && waits(pid, confines)
	})
	v.hijacked = hijack(t, pid)
	return v
}

// waits reports whether a thread of the process polls without an end: for one that confines itself,
// when it has begun to. It polls so while it starts the container's process, too.
func waits(pid int, confines bool) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if confines && !bytes.Contains(status, []byte("NoNewPrivs:\t1\n")) {
		return false
	}
	calls, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	for _, name := range calls {
		text, _ := os.ReadFile(name)
		if f := strings.Fields(string(text)); len(f) > 3 && f[0] == strconv.Itoa(unix.SYS_PPOLL) && f[3] == "0x0" {
			return true
		}
	}
	return false
}

const here = ^uintptr(99) // AT_FDCWD

// The runtime that stays with a container is got hold of, by whatever way, and made to change the
// host. It has no rights left to do that with, on any of its threads.
func TestHijackTheWaitingRuntime(t *testing.T) {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1); errno != 0 {
		harness.Skip(t, "needs a kernel with Landlock: %v", errno)
	}
	b := harness.New(t)
	o := newOutside(b, map[string]string{"file": "the host's"})
	attacks := 0
	attack := func(v *confined, ownState error) {
		t.Helper()
		for _, tid := range v.threads() {
			for what, wanted := range map[string]struct {
				err  error
				nr   uintptr
				args []uintptr
			}{
				"read a file":     {nil, unix.SYS_OPENAT, []uintptr{here, v.pointer(v.file), unix.O_RDONLY}}, // that it is it who calls
				"its own state":   {ownState, unix.SYS_OPENAT, []uintptr{here, v.pointer(v.state), unix.O_WRONLY}},
				"write to a file": {unix.EACCES, unix.SYS_OPENAT, []uintptr{here, v.pointer(v.file), unix.O_WRONLY}},
				"truncate a file": {unix.EACCES, unix.SYS_TRUNCATE, []uintptr{v.pointer(v.file), 0}},
				"remove a file":   {unix.EACCES, unix.SYS_UNLINKAT, []uintptr{here, v.pointer(v.file), 0}},
				"make a file":     {unix.EACCES, unix.SYS_OPENAT, []uintptr{here, v.pointer(v.made), unix.O_WRONLY | unix.O_CREAT, 0o600}},
				"make a folder":   {unix.EACCES, unix.SYS_MKDIRAT, []uintptr{here, v.pointer(v.made), 0o700}},
				"make a link":     {unix.EACCES, unix.SYS_SYMLINKAT, []uintptr{v.pointer(v.file), here, v.pointer(v.made)}},
				"mount":           {unix.EPERM, unix.SYS_MOUNT, []uintptr{v.pointer("tmpfs"), v.pointer(o.dir + "/file"), v.pointer("tmpfs"), unix.MS_BIND, 0}},
				"execute":         {unix.EACCES, unix.SYS_EXECVE, []uintptr{v.pointer("/bin/true"), 0, 0}},
			} {
				fd, err := v.call(tid, wanted.nr, wanted.args...)
				if err != wanted.err {
					t.Errorf("thread %d of berth %s: %s: %v, want %v", tid, v.verb, what, err, wanted.err)
				}
				if err == nil && wanted.nr == unix.SYS_OPENAT {
					if _, err := v.call(tid, unix.SYS_CLOSE, fd); err != nil {
						t.Error(err)
					}
				}
				attacks++
			}
		}
	}
	c := b.Container("/inside", "hang")
	foreground := stay(t, b, o, c, true, "run")
	attack(foreground, nil)
	execution := stay(t, b, o, c, true, "exec", "/inside", "hang")
	attack(execution, unix.EACCES)
	o.untouched()

	// The same attack on a runtime that keeps its rights, as it has a hook to run.
	d := b.Container("/inside", "hang")
	d.Spec.Hooks = &specs.Hooks{Poststop: []specs.Hook{{Path: "/bin/true"}}}
	free := stay(t, b, o, d, false, "run")
	for _, tid := range free.threads() {
		fd, err := free.call(tid, unix.SYS_OPENAT, here, free.pointer(free.file), unix.O_WRONLY)
		if err != nil {
			t.Fatalf("the attack does not work where it should: %v", err)
		}
		_, err = free.call(tid, unix.SYS_CLOSE, fd)
		check(t, err)
	}
	// All of them do what is left to do.
	for _, c := range []*harness.Container{c, d} {
		c.Kill("KILL")
	}
	for _, v := range []*confined{foreground, execution, free} {
		if r := v.running.Wait(); r.Code != 137 || r.Stderr != "" {
			t.Errorf("berth %s: status %d, %s", v.verb, r.Code, r.Stderr)
		}
	}
	t.Logf("%d attempts", attacks)
	harness.Report(t, "attacks", attacks)
}
