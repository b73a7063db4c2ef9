package sys

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/berth-runtime/berth/internal/test/underqemu"
	"golang.org/x/sys/unix"
)

const catchVariable = "BERTH_TEST_CATCH"

// TestCatchSignals lets a process of its own catch signals, as nothing takes that
// back, while its threads compute, grow stacks, collect garbage and start programs.
func TestCatchSignals(t *testing.T) {
	if os.Getenv(catchVariable) != "" {
		catchAll(t)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestCatchSignals$", "-test.v")
	cmd.Env = append(os.Environ(), catchVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// TestCatchSignalsNotInChild forks a child that has the handler still, as one of
// syscall.ForkExec has for the four signals that Go itself does not handle, and whose
// descriptors are not ours: what it gets is none of our signals.
func TestCatchSignalsNotInChild(t *testing.T) {
	if os.Getenv(catchVariable) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCatchSignalsNotInChild$", "-test.v")
		cmd.Env = append(os.Environ(), catchVariable+"=1")
		if runner := underqemu.Emulator(); runner != "" {
			cmd.Args = append([]string{runner}, cmd.Args...)
			cmd.Path = runner
		}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	fd, err := CatchSignals(unix.SIGTSTP, unix.SIGCONT)
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid := forkToSignal(unix.SIGTSTP)
	var ended unix.WaitStatus
	if _, err := unix.Wait4(pid, &ended, 0, nil); err != nil || ended.ExitStatus() != 7 {
		t.Fatalf("the child ended with %#x, %v", ended, err)
	}
	if n, err := unix.Read(fd, make([]byte, 1)); err != unix.EAGAIN {
		t.Errorf("%d signals of the child's came, %v", n, err)
	}
	if err := unix.Kill(os.Getpid(), unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if got := readSignal(t, fd); got != unix.SIGCONT {
		t.Errorf("signal %d arrived as %d", unix.SIGCONT, got)
	}
}

// forkToSignal forks a child that gives itself a signal, and ends with 7. It runs no more
// of Go than raw system calls: the locks of other threads are held in it for ever.
//
//go:norace
func forkToSignal(s unix.Signal) int {
	pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid == 0 {
		me, _, _ := unix.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
		_, _, _ = unix.RawSyscall(unix.SYS_KILL, me, uintptr(s), 0)
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 7, 0, 0)
	}
	return int(pid)
}

// TestCatchUnderQEMU tests the handler of the other machine.
func TestCatchUnderQEMU(t *testing.T) {
	if out := underqemu.Tests(t, "^TestCatchSignalsNotInChild$"); !strings.Contains(out, "--- PASS: TestCatchSignalsNotInChild") {
		t.Error(out)
	}
}

func catchAll(t *testing.T) {
	signals := []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGUSR1, unix.SIGCONT, unix.SIGTSTP, unix.SIGWINCH, 34, 50}
	fd, err := CatchSignals(signals...)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for range 3 {
		busy.Add(1)
		go func() {
			defer busy.Done()
			var sink []byte
			for n := 0; ; n++ {
				select {
				case <-stop:
					runtime.KeepAlive(sink)
					return
				default:
					sink = grow(n%200, make([]byte, 1000))
				}
			}
		}()
	}
	busy.Add(1)
	go func() {
		defer busy.Done()
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
				if err := exec.Command("/proc/self/exe", "-test.run=^$").Run(); err != nil {
					t.Errorf("start a program: %v", err)
				}
			}
		}
	}()
	// One of a kind at a time: a standard signal that is pending already is not
	// counted again.
	for range 300 {
		for _, s := range signals {
			if err := unix.Kill(os.Getpid(), s); err != nil {
				t.Fatal(err)
			}
			if got := readSignal(t, fd); got != s {
				t.Fatalf("signal %d arrived as %d", s, got)
			}
		}
	}
	close(stop)
	busy.Wait()
}

func grow(depth int, b []byte) []byte {
	var frame [256]byte
	if depth == 0 {
		return append(b, frame[:]...)
	}
	frame[depth%256] = b[0]
	return grow(depth-1, b[:len(b):cap(b)])
}

func readSignal(t *testing.T, fd int) unix.Signal {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 60000)
		if err == unix.EINTR {
			continue
		}
		if n != 1 {
			t.Fatal("no signal came: " + strconv.Itoa(n))
		}
		var b [1]byte
		if n, err := unix.Read(fd, b[:]); n != 1 || err != nil {
			t.Fatalf("read %d bytes: %v", n, err)
		}
		return unix.Signal(b[0])
	}
}
