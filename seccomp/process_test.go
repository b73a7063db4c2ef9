package seccomp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// What may kill is tried in a process of its own: the test binary, told by childEnv what to do and
// by childEnv_PROFILE under which profile.
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

// child is what the test binary does in a process of its own: it loads the profile on its first
// thread and then does the job.
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
	case "install", "install apart":
		return installChild(&p, job != "install")
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

// TestKernelOtherArch makes calls of i386 from a 64-bit program: those of the multiplexer, and an
// architecture not listed.
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
