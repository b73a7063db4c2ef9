package sys

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

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
