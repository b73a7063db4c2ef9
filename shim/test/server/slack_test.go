package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/test/wait"
	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	"golang.org/x/sys/unix"
)

// The timer slack that the shim gives itself before Go's runtime begins
// (internal/start/entry), and its GOMAXPROCS, reach nothing that it starts: containers,
// what is added to them, logging programs and other runtimes have what containerd has.
func TestTimerSlackIsContainerds(t *testing.T) {
	n := newNode(t)
	const slack, want = 77777, "77777\n"
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	n.must(unix.Prctl(unix.PR_SET_TIMERSLACK, slack, 0, 0, 0))
	script := func(name string) (path, out string) {
		path, out = filepath.Join(n.dir, name), filepath.Join(n.dir, name+".out")
		text := "#!/bin/sh\n{ cat /proc/self/timerslack_ns; env | grep ^GOMAXPROCS=00; } > " + out + "\nexit 7\n"
		n.must(os.WriteFile(path, []byte(text), 0o755))
		return path, out
	}
	told := func(what, out string) {
		t.Helper()
		wait.Until(n.t, what+" has told", func() bool {
			text, err := os.ReadFile(out)
			return err == nil && strings.HasSuffix(string(text), "\n")
		})
		if text, _ := os.ReadFile(out); string(text) != want {
			t.Errorf("%s: %q, want %q", what, text, want)
		}
	}
	b := n.define("c", n.spec("c", "sleep", "1000"))
	if text, err := os.ReadFile("/proc/self/timerslack_ns"); err != nil || len(text) == 0 {
		t.Skipf("timer slacks cannot be read here: %v", err)
	}
	n.must(b.create())
	n.must(b.begin(""))
	slackOf := func(pid uint32) string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/timerslack_ns", pid))
		n.must(err)
		return string(text)
	}
	if got := slackOf(b.pid); got != want {
		t.Errorf("the container: %q", got)
	}
	n.must(b.addExec("e", "sleep", "1000"))
	r, err := b.Start(n.ctx(), &taskapi.StartRequest{ID: "c", ExecID: "e"})
	n.must(err)
	if got := slackOf(r.Pid); got != want {
		t.Errorf("an exec: %q", got)
	}
	logger, out := script("logger")
	d := b.join("d", n.spec("d", "true"))
	_ = d.create(func(r *taskapi.CreateTaskRequest) { r.Stdout = "binary://" + logger }) // it ends without having said that it is ready
	told("a logging program", out)
	if d.pid != 0 {
		_ = d.kill(9)
		d.wait("")
		n.must(d.delete(""))
	}
	other, out := script("runtime")
	e := b.join("e", n.spec("e", "true"))
	err = e.create(func(r *taskapi.CreateTaskRequest) {
		r.Options = n.any("containerd.runc.v1.Options", &runcoptions.Options{Root: filepath.Join(n.dir, "other"), BinaryName: other})
	})
	if err == nil {
		t.Error("a runtime that fails has made a container")
	}
	told("another runtime", out)
	b.remove()
	b.gone()
}
