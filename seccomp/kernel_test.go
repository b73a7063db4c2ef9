package seccomp

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/seccomp/internal/cbpf"
)

// The kernel is asked by real calls. A filter that lets Go's runtime live is loaded on a thread of this process, which ends
// with its goroutine; one that may kill, in a process of its own.

// childEnv tells the test binary that it is such a process: what to do, and the profile.
const childEnv = "BERTH_SECCOMP_TEST_CHILD"

func TestMain(m *testing.M) {
	if job := os.Getenv(childEnv); job != "" {
		if err := child(job, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(99)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// probed says whether this process may load filters at all.
var probed = sync.OnceValue(func() error {
	return onThread(&specs.LinuxSeccomp{DefaultAction: specs.ActAllow}, func(int) error { return nil })
})

func needKernel(t testing.TB) {
	t.Helper()
	if err := probed(); err != nil {
		t.Skipf("no filters can be loaded here: %v", err)
	}
}

func load(f *Filter) (int, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	return f.Load()
}

// onThread runs a function on a thread of its own, under the profile.
func onThread(p *specs.LinuxSeccomp, do func(listener int) error) error {
	f, err := Compile(p)
	if err != nil {
		return err
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		listener, err := load(f)
		if err == nil {
			err = do(listener)
		}
		result <- err
	}()
	return <-result
}

// try makes a call, with nothing of Go's runtime in between.
func try(number uintptr, args ...uint64) (uintptr, syscall.Errno) {
	var a [6]uintptr
	for i, v := range args {
		a[i] = uintptr(v)
	}
	r, _, errno := syscall.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	return r, errno
}

func uintp(v uint) *uint { return &v }

func TestKernelErrno(t *testing.T) {
	needKernel(t)
	for _, test := range []struct {
		name  string
		errno *uint
		want  syscall.Errno
	}{
		{"default", nil, syscall.EPERM},
		{"ENOSYS", uintp(uint(syscall.ENOSYS)), syscall.ENOSYS},
		// Go's syscall package takes 4095 for no error.
		{"great", uintp(maxErrno - 1), maxErrno - 1},
		{"none", uintp(0), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{
				{Names: []string{"getppid"}, Action: specs.ActErrno, ErrnoRet: test.errno},
			}}
			err := onThread(p, func(int) error {
				if r, errno := try(unix.SYS_GETPPID); errno != test.want || test.want == 0 && r != 0 {
					return fmt.Errorf("getppid: %d, errno %d, want errno %d", r, errno, test.want)
				}
				if r, errno := try(unix.SYS_GETPID); int(r) != os.Getpid() || errno != 0 {
					return fmt.Errorf("getpid, that no rule is for: %d, errno %d", r, errno)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestKernelConditions compares the kernel with the interpreter. getpid and getppid take no arguments, and so let any be given.
func TestKernelConditions(t *testing.T) {
	needKernel(t)
	a := archByName(NativeArch())
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	matched := 0
	for i := range rounds {
		r := rand.New(rand.NewPCG(17, uint64(i)))
		p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow}
		for range 1 + r.IntN(6) {
			s := specs.LinuxSyscall{Names: []string{pick(r, []string{"getpid", "getppid"})}, Action: specs.ActErrno, ErrnoRet: uintp(uint(1 + r.IntN(4000)))}
			for range 1 + r.IntN(3) {
				s.Args = append(s.Args, specs.LinuxSeccompArg{Index: uint(r.IntN(6)), Op: pick(r, randomOps), Value: randomValue(r), ValueTwo: randomValue(r)})
			}
			p.Syscalls = append(p.Syscalls, s)
		}
		f, err := Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		values := interesting(p)
		err = onThread(p, func(int) error {
			for range 300 {
				d := cbpf.Data{Number: unix.SYS_GETPID, Arch: a.audit}
				if r.IntN(2) == 0 {
					d.Number = unix.SYS_GETPPID
				}
				for i := range d.Args {
					d.Args[i] = pick(r, values) + uint64(r.IntN(3)) - 1
					if !a.wide {
						d.Args[i] &= 0xffffffff
					}
				}
				_, errno := try(uintptr(d.Number), d.Args[:]...)
				want := syscall.Errno(0)
				if value, _ := cbpf.Run(f.Program, &d, a.bigEndian); value != retAllow {
					want = syscall.Errno(value & retData)
					matched++
				}
				if errno != want {
					return fmt.Errorf("number %d args %#x: errno %d, want %d\n%s", d.Number, d.Args, errno, want, asJSON(p))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if matched == 0 {
		t.Error("no rule ever applied")
	}
}

// TestKernelTakesFilters hands the kernel filters of all kinds. Three instructions in front answer before them, so that they do
// nothing; the kernel checks the whole program nevertheless.
func TestKernelTakesFilters(t *testing.T) {
	needKernel(t)
	bypass := []cbpf.Instruction{
		{Code: cbpf.LoadWord, K: cbpf.OffsetArch},
		{Code: cbpf.JumpEqual, K: 0, Jt: 1},
		{Code: cbpf.Return, K: retAllow},
	}
	take := func(program []cbpf.Instruction) error {
		result := make(chan error)
		go func() {
			runtime.LockOSThread()
			f := Filter{Program: append(slices.Clone(bypass), program...), bigEndian: archByName(NativeArch()).bigEndian}
			_, err := load(&f)
			result <- err
		}()
		return <-result
	}
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	for i := range rounds {
		r := rand.New(rand.NewPCG(19, uint64(i)))
		p := randomProfile(r, false)
		native := pick(r, archs[:]).name
		p.Architectures = kin(native)
		f, err := CompileFor(native, p)
		if err != nil {
			t.Fatal(err)
		}
		if err := take(f.Program); err != nil {
			t.Fatalf("%v\n%s", err, asJSON(p))
		}
	}
	for i := range archs {
		p := Default()
		p.Architectures = kin(archs[i].name)
		f, err := CompileFor(archs[i].name, p)
		if err != nil {
			t.Fatal(err)
		}
		if err := take(f.Program); err != nil {
			t.Errorf("our profile on %s: %v", archs[i].name, err)
		}
	}
	// The check is one: what our own checker refuses, the kernel does too.
	for _, bad := range [][]cbpf.Instruction{
		{{Code: cbpf.LoadWord, K: 64}, {Code: cbpf.Return}},
		{{Code: cbpf.LoadWord, K: 2}, {Code: cbpf.Return}},
		{{Code: cbpf.JumpEqual, Jt: 1}, {Code: cbpf.Return}},
		{{Code: cbpf.Jump, K: 1}, {Code: cbpf.Return}},
		{{Code: cbpf.LoadWord}},
		{{Code: 0x28}, {Code: cbpf.Return}},
	} {
		if cbpf.Check(bad) == nil {
			t.Errorf("%v is accepted by the checker", bad)
		}
		if take(bad) == nil {
			t.Errorf("%v is accepted by the kernel", bad)
		}
	}
}

func TestKernelNotify(t *testing.T) {
	needKernel(t)
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{{Names: []string{"getppid"}, Action: specs.ActNotify}}}
	err := onThread(p, func(listener int) error {
		if listener < 0 {
			return errors.New("no listener")
		}
		if flags, err := unix.FcntlInt(uintptr(listener), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			return fmt.Errorf("the listener is not close-on-exec: %#x, %v", flags, err)
		}
		if link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", listener)); err != nil || link != "anon_inode:seccomp notify" {
			return fmt.Errorf("the listener is %q, %v", link, err)
		}
		// Another thread sees that a call waits, and closes the listener without an answer.
		seen := make(chan error, 1)
		go func() {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}, -1)
			seen <- errors.Join(err, unix.Close(listener))
		}()
		if _, errno := try(unix.SYS_GETPPID); errno != unix.ENOSYS {
			return fmt.Errorf("getppid, whose listener went away: errno %d", errno)
		}
		return <-seen
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Run("second listener", func(t *testing.T) {
		f, err := Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		err = onThread(p, func(listener int) error {
			defer unix.Close(listener)
			if _, err := f.Load(); !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), "one only") {
				return fmt.Errorf("a second listener: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestKernelNotifyFlags(t *testing.T) {
	needKernel(t)
	if !sys.SeccompFlagsKnown(FlagWaitKillableRecv | FlagNewListener) {
		t.Skip("SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV needs Linux 5.19")
	}
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{{Names: []string{"getppid"}, Action: specs.ActNotify}},
		Flags: []specs.LinuxSeccompFlag{specs.LinuxSeccompFlagWaitKillableRecv, specs.LinuxSeccompFlagLog, specs.LinuxSeccompFlagSpecAllow}}
	if err := onThread(p, func(listener int) error { return unix.Close(listener) }); err != nil {
		t.Fatal(err)
	}
	// Without a call that notifies, the kernel would refuse the flag.
	p.Syscalls = nil
	if err := onThread(p, func(int) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestKernelLogAndTrace(t *testing.T) {
	needKernel(t)
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{
		{Names: []string{"getppid"}, Action: specs.ActLog},
		{Names: []string{"getuid"}, Action: specs.ActTrace},
	}}
	err := onThread(p, func(int) error {
		if r, errno := try(unix.SYS_GETPPID); int(r) != os.Getppid() || errno != 0 {
			return fmt.Errorf("a logged call: %d, errno %d", r, errno)
		}
		if _, errno := try(unix.SYS_GETUID); errno != unix.ENOSYS {
			return fmt.Errorf("a traced call without a tracer: errno %d", errno)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// child is what the test binary does in a process of its own: it loads the profile on its first thread and then does the job.
func child(job string, args []string) error {
	runtime.LockOSThread()
	var p specs.LinuxSeccomp
	if err := json.Unmarshal([]byte(os.Getenv(childEnv+"_PROFILE")), &p); err != nil {
		return err
	}
	if err := os.Unsetenv(childEnv); err != nil {
		return err
	}
	f, err := Compile(&p)
	if err != nil {
		return err
	}
	switch job {
	case "getppid":
		if _, err := load(f); err != nil {
			return err
		}
		_, errno := try(unix.SYS_GETPPID)
		fmt.Println("errno", int(errno))
	case "x32":
		if _, err := load(f); err != nil {
			return err
		}
		_, errno := try(unix.SYS_GETPPID | x32Bit)
		fmt.Println("errno", int(errno))
	case "thread":
		// Another thread makes the call, and is seen to vanish.
		tid := make(chan int)
		go func() {
			runtime.LockOSThread()
			if _, err := load(f); err != nil {
				fmt.Println(err)
				os.Exit(98)
			}
			tid <- unix.Gettid()
			try(unix.SYS_GETPPID)
			fmt.Println("it lives")
			os.Exit(97)
		}()
		task := fmt.Sprintf("/proc/self/task/%d", <-tid)
		for {
			if _, err := os.Stat(task); errors.Is(err, os.ErrNotExist) {
				fmt.Println("gone")
				return nil
			}
			runtime.Gosched()
		}
	case "tsync":
		// All threads are filtered, those that were there before too.
		ready, goOn, done := make(chan bool), make(chan bool), make(chan syscall.Errno)
		go func() {
			runtime.LockOSThread()
			ready <- true
			<-goOn
			_, errno := try(unix.SYS_GETPPID)
			done <- errno
		}()
		<-ready
		if _, err := load(f); err != nil {
			return err
		}
		close(goOn)
		fmt.Println("errno", int(<-done))
	case "exec":
		if _, err := load(f); err != nil {
			return err
		}
		return unix.Exec(args[0], args, os.Environ())
	}
	return nil
}

func runChild(t *testing.T, job string, p *specs.LinuxSeccomp, args ...string) (output string, state *os.ProcessState) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), childEnv+"="+job, childEnv+"_PROFILE="+asJSON(p))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState
}

func one(action specs.LinuxSeccompAction) *specs.LinuxSeccomp {
	return &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{{Names: []string{"getppid"}, Action: action}}}
}

func killedBySIGSYS(state *os.ProcessState) bool {
	status := state.Sys().(syscall.WaitStatus)
	return status.Signaled() && status.Signal() == syscall.SIGSYS
}

func TestKernelKills(t *testing.T) {
	needKernel(t)
	t.Run("process", func(t *testing.T) {
		if out, state := runChild(t, "getppid", one(specs.ActKillProcess)); !killedBySIGSYS(state) {
			t.Errorf("%v: %s", state, out)
		}
	})
	for _, action := range []specs.LinuxSeccompAction{specs.ActKill, specs.ActKillThread} {
		t.Run(string(action), func(t *testing.T) {
			if out, state := runChild(t, "thread", one(action)); !state.Success() || out != "gone\n" {
				t.Errorf("%v: %s", state, out)
			}
		})
	}
	t.Run("trap", func(t *testing.T) {
		// Go's runtime answers the signal with a traceback.
		if out, state := runChild(t, "getppid", one(specs.ActTrap)); state.ExitCode() != 2 || !strings.Contains(out, "SIGSYS: bad system call") {
			t.Errorf("%v: %s", state, out)
		}
	})
}

func TestKernelTSync(t *testing.T) {
	needKernel(t)
	p := one(specs.ActErrno)
	p.Syscalls[0].ErrnoRet = uintp(77)
	p.Flags = []specs.LinuxSeccompFlag{flagTSync}
	if out, state := runChild(t, "tsync", p); out != "errno 77\n" {
		t.Errorf("%v: %s", state, out)
	}
	p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: []string{"getuid"}, Action: specs.ActNotify})
	if out, state := runChild(t, "tsync", p); out != "errno 77\n" {
		t.Errorf("with a listener: %v: %s", state, out)
	}
}

func TestKernelX32(t *testing.T) {
	needKernel(t)
	if NativeArch() != specs.ArchX86_64 {
		t.Skip("x32 is of x86-64 only")
	}
	// Not listed, and nothing says that newer calls get ENOSYS: another architecture.
	if out, state := runChild(t, "x32", one(specs.ActErrno)); !killedBySIGSYS(state) {
		t.Errorf("%v: %s", state, out)
	}
	// The rule for newer calls holds: ENOSYS, whether the kernel knows x32 or not.
	p := Default()
	p.Architectures = []specs.Arch{specs.ArchX86_64}
	if out, state := runChild(t, "x32", p); out != fmt.Sprintf("errno %d\n", unix.ENOSYS) {
		t.Errorf("%v: %s", state, out)
	}
	p = one(specs.ActErrno)
	p.Syscalls[0].ErrnoRet = uintp(76)
	p.Architectures = []specs.Arch{specs.ArchX86_64, specs.ArchX32}
	if out, state := runChild(t, "x32", p); out != "errno 76\n" {
		t.Errorf("%v: %s", state, out)
	}
}

// TestKernelDefaultProfile runs ordinary programs under our own profile.
func TestKernelDefaultProfile(t *testing.T) {
	needKernel(t)
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell to run")
	}
	script := `set -e
		cd "$(mktemp -d)"; echo text > a; ln a b; ln -s a c; mkdir d; mv b d/; cat d/b | tr a-z A-Z; chmod 600 a
		(sleep 0 & wait); ls -l > /dev/null; rm -r d a c; echo $((6 * 7)); kill -0 $$`
	out, state := runChild(t, "exec", Default(), sh, "-c", script)
	if want := "TEXT\n42\n"; out != want || !state.Success() {
		t.Errorf("%v: %q, want %q", state, out, want)
	}
	if unshare, err := exec.LookPath("unshare"); err == nil {
		out, state := runChild(t, "exec", Default(), unshare, "-U", "true")
		if state.Success() || !strings.Contains(out, "Operation not permitted") {
			t.Errorf("unshare: %v: %s", state, out)
		}
	}
}

// TestKernelOtherArch makes calls of i386 from a 64-bit program: those of the multiplexer, and an architecture not listed.
func TestKernelOtherArch(t *testing.T) {
	needKernel(t)
	if NativeArch() != specs.ArchX86_64 {
		t.Skip("made for x86-64 and i386")
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not installed to make a program that calls i386's way")
	}
	program := filepath.Join(t.TempDir(), "int80")
	if out, err := exec.Command(gcc, "-O1", "-static", "-o", program, "testdata/int80.c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	if out, err := exec.Command(program, "20", "0").CombinedOutput(); err != nil || strings.HasPrefix(string(out), "-") {
		t.Skipf("this kernel has no calls of i386: %v %s", err, out)
	}
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Architectures: []specs.Arch{specs.ArchX86_64, specs.ArchX86}, Syscalls: []specs.LinuxSyscall{
		{Names: []string{"socket"}, Action: specs.ActErrno, ErrnoRet: uintp(55)},
		{Names: []string{"bind"}, Action: specs.ActErrno, ErrnoRet: uintp(56), Args: []specs.LinuxSeccompArg{{Index: 2, Value: 3, Op: specs.OpEqualTo}}},
		{Names: []string{"shmget"}, Action: specs.ActErrno, ErrnoRet: uintp(57)},
		{Names: []string{"getpgid"}, Action: specs.ActErrno, ErrnoRet: uintp(58), Args: []specs.LinuxSeccompArg{{Index: 0, Value: 0xffffffff_00000007, Op: specs.OpEqualTo}}},
	}}
	for _, test := range []struct{ what, number, arg, want string }{
		{"socket, directly", "359", "1", "-55"},
		{"socket, by socketcall", "102", "1", "-55"},
		{"bind, whose argument can't be seen", "102", "2", "-56"},
		{"connect, that no rule is for", "102", "3", "-14"},
		{"shmget, by ipc", "117", "23", "-57"},
		{"shmget, by ipc with a version", "117", "0x10017", "-57"},
		{"getpgid, whose argument has 32 bits", "132", "7", "-58"},
	} {
		if out, state := runChild(t, "exec", p, program, test.number, test.arg); strings.TrimSpace(out) != test.want {
			t.Errorf("%s: %q (%v), want %s", test.what, out, state, test.want)
		}
	}
	p.Architectures = nil
	if out, state := runChild(t, "exec", p, program, "20", "0"); !killedBySIGSYS(state) {
		t.Errorf("an architecture that isn't listed: %v: %s", state, out)
	}
}

func TestSupported(t *testing.T) {
	s := Supported()
	if !slices.IsSorted(s.Archs) || !slices.IsSorted(s.Actions) || !slices.IsSorted(s.Operators) || !slices.IsSorted(s.KnownFlags) {
		t.Errorf("not sorted: %+v", s)
	}
	if len(s.Archs) != 23 || len(s.Actions) != 9 || len(s.Operators) != 7 || len(s.KnownFlags) != 4 {
		t.Errorf("%d architectures, %d actions, %d operators, %d flags", len(s.Archs), len(s.Actions), len(s.Operators), len(s.KnownFlags))
	}
	needKernel(t)
	for _, flag := range []string{flagTSync, string(specs.LinuxSeccompFlagLog), string(specs.LinuxSeccompFlagSpecAllow)} {
		if !slices.Contains(s.SupportedFlags, flag) {
			t.Errorf("%s is said not to be supported; each kernel since 4.17 has it", flag)
		}
	}
	// Whatever is listed as known is taken by the compiler.
	for _, name := range s.KnownFlags {
		if _, err := Compile(&specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Flags: []specs.LinuxSeccompFlag{specs.LinuxSeccompFlag(name)}}); err != nil {
			t.Error(err)
		}
	}
	for _, name := range s.Actions {
		if _, err := Compile(&specs.LinuxSeccomp{DefaultAction: specs.LinuxSeccompAction(name)}); err != nil {
			t.Error(err)
		}
		if value, _ := actionValue(specs.LinuxSeccompAction(name)); !sys.SeccompActionAvailable(value) {
			t.Errorf("the kernel doesn't know %s", name)
		}
	}
}

func TestBytes(t *testing.T) {
	for _, test := range []struct {
		arch  specs.Arch
		order binary.ByteOrder
	}{{specs.ArchX86_64, binary.LittleEndian}, {specs.ArchS390X, binary.BigEndian}} {
		f, err := CompileFor(test.arch, &specs.LinuxSeccomp{DefaultAction: specs.ActErrno})
		if err != nil {
			t.Fatal(err)
		}
		b := f.Bytes()
		if len(b) != 8*len(f.Program) {
			t.Fatalf("%d bytes for %d instructions", len(b), len(f.Program))
		}
		for i, ins := range f.Program {
			b := b[8*i:]
			if test.order.Uint16(b) != ins.Code || b[2] != ins.Jt || b[3] != ins.Jf || test.order.Uint32(b[4:]) != ins.K {
				t.Errorf("%s instruction %d: % x is not %+v", test.arch, i, b[:8], ins)
			}
		}
	}
}
