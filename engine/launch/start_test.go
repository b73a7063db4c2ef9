package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Whatever numbers the descriptors for the child have here, the image is still
// there when it is executed.
func TestStartWithAnyDescriptors(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	at := func(fd int) int { // a descriptor of that number or above
		high, err := unix.FcntlInt(null.Fd(), unix.F_DUPFD_CLOEXEC, fd)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(high) })
		return high
	}
	for _, gate := range []int{0, at(3), at(10), at(40)} {
		for preserved := range 12 {
			s := Spawn{Inherited: []int{gate}, Cgroup: -1, Stdio: [3]uintptr{null.Fd(), null.Fd(), null.Fd()}}
			for range preserved {
				s.Preserved = append(s.Preserved, uintptr(gate))
			}
			s.Program = func(n *Numbers) (*program.Program, error) {
				b := program.NewBuilder()
				b.Because("", "end")
				b.Call(unix.SYS_EXIT_GROUP, program.Int(42))
				return b.Build(n.Report)
			}
			child, err := s.Start()
			if err != nil {
				t.Fatalf("gate %d, %d preserved: %v", gate, preserved, err)
			}
			if status, err := child.Wait(); err != nil || status.ExitStatus() != 42 {
				t.Errorf("gate %d, %d preserved: it ended with %v, %v", gate, preserved, status, err)
			}
			child.Close()
		}
	}
}

// inOtherProcess runs the test in a process of its own, which a filter of system calls would stay
// with, and reports whether this is it.
func inOtherProcess(t *testing.T) bool {
	t.Helper()
	const variable = "BERTH_TEST_OTHER_PROCESS"
	if os.Getenv(variable) != "" {
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v:\n%s", err, out)
	}
	return false
}

// forbid has this process, for good, come to an end of some kind at a system call.
func forbid(t *testing.T, call specs.LinuxSyscall) {
	t.Helper()
	filter, err := seccomp.Compile(&specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{call}})
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // of which the next call is
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := sys.SetSeccompFilter(seccomp.FlagTSync, filter.Bytes()); err != nil {
		t.Fatal(err)
	}
}

// TestStartWithoutClone3 does the same where a filter hides clone3, which only a cgroup of
// version 2 needs: that says so.
func TestStartWithoutClone3(t *testing.T) {
	if !inOtherProcess(t) {
		return
	}
	hidden := uint(unix.ENOSYS)
	forbid(t, specs.LinuxSyscall{Names: []string{"clone3"}, Action: specs.ActErrno, ErrnoRet: &hidden})
	TestStartWithAnyDescriptors(t)
	s := Spawn{Stdio: [3]uintptr{0, 1, 2}}
	s.Program = func(n *Numbers) (*program.Program, error) { return program.NewBuilder().Build(n.Report) }
	if _, err := s.Start(); !errors.Is(err, unix.ENOSYS) || !strings.Contains(err.Error(), "clone3 is needed") {
		t.Errorf("into a cgroup: %v", err)
	}
}

// A child that is killed before it executes even the init has not ended as the user's program.
func TestKilledBeforeTheInit(t *testing.T) {
	if !inOtherProcess(t) {
		return
	}
	// A dump of its core would take along who shares its memory, before Linux 5.16.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	forbid(t, specs.LinuxSyscall{Names: []string{"execve"}, Action: specs.ActKillProcess})
	s := Spawn{Cgroup: -1, Stdio: [3]uintptr{0, 1, 2}}
	s.Program = func(n *Numbers) (*program.Program, error) { return program.NewBuilder().Build(n.Report) }
	child, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer child.Kill()
	if err := child.Serve(0, nil); !errors.Is(err, ErrExecuted) {
		t.Errorf("served: %v", err)
	}
	if signal, early := child.EndedEarly(); !early || signal != unix.SIGSYS {
		t.Errorf("killed early: %v, by %v", early, signal)
	}
}

// The pipe of ForkExec comes to be in a hole below all other descriptors, and is moved to behind
// them.
func TestFirstFreeBesideThePipe(t *testing.T) {
	program, err := os.Open("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	dup := func(fd int) int {
		got, err := unix.FcntlInt(program.Fd(), unix.F_DUPFD_CLOEXEC, fd)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(got) })
		return got
	}
	highest := dup(100) // where this process has nothing open
	files := []uintptr{0, 1, 2, uintptr(highest)}
	image := dup(max(firstFree(files), highest+1))
	pid, err := syscall.ForkExec(fmt.Sprintf("/proc/self/fd/%d", image), []string{"true"}, &syscall.ProcAttr{Env: []string{}, Files: files})
	if err != nil {
		t.Fatalf("execute descriptor %d: %v", image, err)
	}
	if p, err := os.FindProcess(pid); err != nil {
		t.Error(err)
	} else if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
}
