//go:build amd64 || arm64

package sys

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/internal/test/underqemu"
	"golang.org/x/sys/unix"
)

// start executes a file with the given descriptors, and waits for its end.
func start(t testing.TB, file string, files ...uintptr) (ChildExit, error) {
	t.Helper()
	image, err := unix.Open(file, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(image)
	v := Vfork{Cgroup: -1, Files: files, Image: image, Name: "true"}
	_, pid, pidfd, err := v.Start()
	if err != nil {
		return ChildExit{}, err
	}
	defer unix.Close(pidfd)
	ended, err := WaitID(unix.P_PIDFD, pidfd, 0)
	if err != nil || ended.Pid != pid {
		t.Errorf("process %d ended as %+v, %v", pid, ended, err)
	}
	return ended, nil
}

func needClone3(t testing.TB) {
	t.Helper()
	if _, err := start(t, "/bin/true", 0, 1, 2); errors.Is(err, ErrNoClone3) {
		t.Skip("no clone3 here: ", err)
	}
}

// Each descriptor gets the number that it is to have, whatever stands in its way, and
// the image is still there then.
func TestVforkDescriptors(t *testing.T) {
	needClone3(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, low := range []int{0, 3, 5, 7, 20} {
		high, err := unix.FcntlInt(w.Fd(), unix.F_DUPFD_CLOEXEC, low)
		if err != nil {
			t.Fatal(err)
		}
		for extra := range 30 { // the image's own number comes to be among those of the child
			files := []uintptr{null.Fd(), uintptr(high), null.Fd()}
			for range extra {
				files = append(files, 0)
			}
			files = append(files, uintptr(high))
			image, err := unix.Open("/bin/echo", unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			v := Vfork{Cgroup: -1, Files: files, Image: image, Name: "echo"}
			comm, _, pidfd, err := v.Start()
			unix.Close(image)
			if err != nil {
				t.Fatalf("%v: %v", files, err)
			}
			if ended, err := WaitID(unix.P_PIDFD, pidfd, 0); err != nil || ended.Code != CldExited || ended.Status != 0 {
				t.Errorf("%v, image %d as %s: %+v, %v", files, image, comm, ended, err)
			}
			unix.Close(pidfd)
			var said [16]byte
			if n, err := unix.Read(int(r.Fd()), said[:]); string(said[:max(n, 0)]) != "\n" {
				t.Errorf("%v: it said %q, %v", files, said[:max(n, 0)], err)
			}
		}
		unix.Close(high)
	}
}

// What the child can't do is an error here, and leaves no zombie.
func TestVforkFails(t *testing.T) {
	needClone3(t)
	for file, want := range map[string]error{"/dev/null": unix.EACCES, "/": unix.EACCES} {
		if _, err := start(t, file, 0, 1, 2); !errors.Is(err, want) || !strings.HasPrefix(err.Error(), "execve: ") {
			t.Errorf("%s: %v, want %v of execve", file, err, want)
		}
	}
	if _, err := start(t, "/bin/true", 0, 1, 2, 12345); !errors.Is(err, unix.EBADF) || strings.Contains(err.Error(), "execve") {
		t.Errorf("a descriptor that is not there: %v", err)
	}
	v := Vfork{Cgroup: 0, Files: []uintptr{0, 1, 2}, Name: "true"}
	if _, _, _, err := v.Start(); !errors.Is(err, unix.EBADF) {
		t.Errorf("descriptor 0 as a cgroup: %v", err)
	}
	if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a child is left: %v", err)
	}
}

// The child begins with the signals blocked that its parent's thread has blocked, and
// with a handler for none. The parent's thread is as it was.
func TestVforkSignals(t *testing.T) {
	needClone3(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set, old, now unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGUSR2 - 1)
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &set, &old); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	image, err := unix.Open("/bin/cat", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	v := Vfork{Cgroup: -1, Files: []uintptr{r.Fd(), w.Fd(), 2}, Image: image, Name: "cat"}
	_, pid, pidfd, err := v.Start()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status") // it waits for its input
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, &now)
	if now != set {
		t.Errorf("%x is blocked afterwards, not %x", now.Val[0], set.Val[0])
	}
	for _, line := range []string{"SigBlk:\t0000000000000800\n", "SigCgt:\t0000000000000000\n"} {
		if !bytes.Contains(text, []byte(line)) {
			t.Errorf("want %q in\n%s", line, text)
		}
	}
	_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
	_, _ = WaitID(unix.P_PIDFD, pidfd, 0)
	for _, fd := range []int{image, pidfd} {
		unix.Close(fd)
	}
	r.Close()
	w.Close()
}

// Children are made by several threads while signals come, memory is used and
// collected, and goroutines are preempted.
func TestVforkUnderFire(t *testing.T) {
	needClone3(t)
	caught := make(chan os.Signal, 100)
	signal.Notify(caught, syscall.SIGUSR1)
	defer signal.Stop(caught)
	var stop atomic.Bool
	var others, makers sync.WaitGroup
	others.Add(1)
	go func() {
		defer others.Done()
		for !stop.Load() {
			_ = syscall.Kill(os.Getpid(), syscall.SIGUSR1)
			runtime.Gosched()
		}
	}()
	others.Add(1)
	go func() {
		defer others.Done()
		for waste := [][]byte(nil); !stop.Load(); {
			if waste = append(waste, make([]byte, 10000)); len(waste) > 100 {
				waste = nil
				runtime.GC()
			}
		}
	}()
	for range 4 {
		makers.Add(1)
		go func() {
			defer makers.Done()
			for range 50 {
				if ended, err := start(t, "/bin/true", 0, 1, 2); err != nil || ended.Code != CldExited || ended.Status != 0 {
					t.Errorf("it ended with %+v, %v", ended, err)
				}
			}
		}()
	}
	makers.Wait()
	stop.Store(true)
	others.Wait()
}

// The list of calls is made the same way in an emulator that knows no clone3.
func TestVforkChild(t *testing.T) {
	if os.Getenv("BERTH_TEST_CHILD") == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestVforkChild$")
		cmd.Env = append(os.Environ(), "BERTH_TEST_CHILD=1")
		if runner := underqemu.Emulator(); runner != "" {
			cmd.Args = append([]string{runner}, cmd.Args...)
			cmd.Path = runner
		}
		out, err := cmd.Output()
		var ended *exec.ExitError
		if !errors.As(err, &ended) || ended.ExitCode() != 127 || string(out) != "one\ntwo\n" {
			t.Errorf("%v, %q", err, out)
		}
		return
	}
	one, two := []byte("one\n"), []byte("two\n")
	b := &vforkBlock{}
	b.calls = &[]vforkCall{
		{unix.SYS_WRITE, 1, addressOf(&one[0]), 4, 0},
		{unix.SYS_WRITE, 1, addressOf(&two[0]), 4, 0},
		{unix.SYS_CLOSE, 54321, 0, 0, 0}, // fails, by which it ends
		{unix.SYS_WRITE, 1, addressOf(&one[0]), 4, 0},
	}[0]
	vforkChild(b)
}

// TestVforkUnderQEMU tests the assembly of the other machine as far as qemu-user goes:
// it has no clone3.
func TestVforkUnderQEMU(t *testing.T) {
	if out := underqemu.Tests(t, "^TestVforkChild$"); !strings.Contains(out, "--- PASS: TestVforkChild") {
		t.Error(out)
	}
}
