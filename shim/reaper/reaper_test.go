package reaper

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

var only = sync.OnceValues(Start)

func start(t *testing.T) *Reaper {
	t.Helper()
	r, err := only()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *Reaper) shell(t *testing.T, script string, stdout *os.File) *Child {
	t.Helper()
	attr := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, os.Stderr.Fd(), os.Stderr.Fd()}}
	if stdout != nil {
		attr.Files[1] = stdout.Fd()
	}
	c, err := r.Start("/bin/sh", []string{"sh", "-c", script}, attr, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestStatusesAreExact(t *testing.T) {
	r := start(t)
	for script, want := range map[string]int{"exit 0": 0, "exit 3": 3, "exit 255": 255, "kill -9 $$": 137, "kill -15 $$": 143, "kill -6 $$": 134} {
		if e := r.shell(t, script, nil).Wait(); e.Status != want || e.At.IsZero() {
			t.Errorf("%s: %+v, want %d", script, e, want)
		}
	}
}

func TestSignalReachesTheProcessAndNoOther(t *testing.T) {
	r := start(t)
	c := r.shell(t, "exec sleep 1000", nil)
	if err := c.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := c.Wait(); e.Status != 137 {
		t.Fatalf("%+v", e)
	}
	if err := c.Signal(unix.SIGKILL); err != unix.ESRCH {
		t.Fatalf("signal after the end: %v", err)
	}
}

// A pid that belongs to another process by now gets no signal that was meant for
// the first, and its end does not pass for the first one's.
func TestReusedPid(t *testing.T) {
	const last = "/proc/sys/kernel/ns_last_pid" // the next process has the pid after it
	r := start(t)
	for range 1000 {
		first := r.shell(t, "exit 3", nil)
		first.Wait()
		if err := os.WriteFile(last, []byte(strconv.Itoa(first.Pid-1)), 0); err != nil {
			t.Skipf("pids cannot be chosen here: %v", err)
		}
		second := r.shell(t, "exec sleep 1000", nil)
		if second.Pid == first.Pid {
			if err := first.Signal(unix.SIGTERM); err != unix.ESRCH {
				t.Errorf("signal to the one that has ended: %v", err)
			}
			if err := second.Signal(unix.SIGKILL); err != nil {
				t.Error(err)
			}
			if a, b := first.Wait(), second.Wait(); a.Status != 3 || b.Status != 137 || !b.At.After(a.At) {
				t.Errorf("the first ended as %+v, the second with the same pid as %+v", a, b)
			}
			return
		}
		second.Signal(unix.SIGKILL)
		second.Wait()
	}
	t.Skip("no pid came a second time: other processes were always faster")
}

// orphan starts a process that becomes a child of this one, and says its pid.
func orphan(t *testing.T, r *Reaper, script string) int {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	// The middle process is the runtime, which makes the container and leaves. Its
	// child goes on only then, or the middle one would reap it.
	c := r.shell(t, fmt.Sprintf("sh -c 'while kill -0 $1 2>&-; do :; done; %s' sh $$ >&2 & echo $!", script), write)
	write.Close()
	var b bytes.Buffer
	b.ReadFrom(read)
	c.Wait()
	pid, err := strconv.Atoi(strings.TrimSpace(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// A process that has ended before its pid is known keeps its status, however
// many others come and go in between.
func TestAdoptAfterTheEnd(t *testing.T) {
	r := start(t)
	for i := range 20 {
		release := r.Hold()
		defer release()
		pid := orphan(t, r, fmt.Sprintf("exit %d", i+1))
		for range 3 {
			r.shell(t, "exit 99", nil).Wait()
		}
		got := make(chan Exit, 1)
		c, err := r.Adopt(pid, func(e Exit) { got <- e })
		if err != nil {
			t.Fatal(err)
		}
		release()
		if e := c.Wait(); e.Status != i+1 || e.Pid != pid || e != <-got {
			t.Fatalf("%+v, want status %d of %d", e, i+1, pid)
		}
	}
}

func TestAdoptRefusesWhoIsNoChild(t *testing.T) {
	r := start(t)
	if _, err := r.Adopt(os.Getppid(), nil); err == nil {
		t.Fatal("adopted the parent")
	}
	if _, err := r.Adopt(1<<22+1, nil); err == nil {
		t.Fatal("adopted a pid that cannot be")
	}
}

func TestOrphansAreReaped(t *testing.T) {
	r := start(t)
	var pids []int
	for range 10 {
		pids = append(pids, orphan(t, r, "exit 5"))
	}
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err == unix.ESRCH {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		// A zombie can still be signalled, by the null signal; who is reaped cannot.
		for unix.PidfdSendSignal(fd, 0, nil, 0) == nil {
			r.shell(t, "exit 0", nil).Wait() // something to wait for, and a SIGCHLD
		}
		unix.Close(fd)
	}
}

func TestManyAtOnce(t *testing.T) {
	r := start(t)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			release := r.Hold()
			defer release()
			if e := r.shell(t, fmt.Sprintf("exit %d", i), nil).Wait(); e.Status != i {
				t.Errorf("got %+v, want %d", e, i)
			}
		}()
	}
	wg.Wait()
	if n := len(r.children); n != 0 {
		t.Errorf("%d children are still known", n)
	}
}

// Another waiter must not make a Wait last for ever; only the status is lost.
func TestChildThatSomebodyElseReaped(t *testing.T) {
	r := start(t)
	r.mu.Lock() // no sweep meanwhile
	pidfd := -1
	pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{PidFD: &pidfd}})
	if err != nil {
		r.mu.Unlock()
		t.Fatal(err)
	}
	c := r.add(pid, pidfd, nil)
	var status unix.WaitStatus
	_, err = unix.Wait4(pid, &status, 0, nil)
	r.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	r.poke()
	if e := c.Wait(); e.Status != 255 {
		t.Fatalf("%+v", e)
	}
}
