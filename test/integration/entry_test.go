package integration

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// What the engine arranges for itself before Go's runtime begins (internal/start/entry) reaches
// nobody else: each process that it starts has the timer slack of the engine's caller, and no
// GOMAXPROCS.
func TestNothingOfTheEntryIsPassedOn(t *testing.T) {
	const callers = "70000"
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 70000, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	b := harness.New(t)
	dir := t.TempDir()
	hook := func(name string) specs.Hook {
		script := "cat /proc/self/timerslack_ns > " + filepath.Join(dir, name) + "; env >> " + filepath.Join(dir, name)
		return specs.Hook{Path: "/bin/sh", Args: []string{"sh", "-c", script}}
	}
	const look = "cat /proc/self/timerslack_ns"
	c := b.Container("/inside", "hang")
	c.Spec.Hooks = &specs.Hooks{
		CreateRuntime: []specs.Hook{hook("createRuntime")}, Poststart: []specs.Hook{hook("poststart")}, Poststop: []specs.Hook{hook("poststop")},
		StartContainer: []specs.Hook{{Path: "/bin/sh", Args: []string{"sh", "-c", "test $(cat /proc/self/timerslack_ns) = " + callers}}},
	}
	c.Create().Start()
	if got := c.Exec(nil, "/bin/sh", "-c", look).OK(t).Stdout; strings.TrimSpace(got) != callers {
		t.Errorf("a process of exec has a timer slack of %q, want %s", got, callers)
	}
	if got, err := os.ReadFile("/proc/" + strconv.Itoa(c.PID) + "/timerslack_ns"); err != nil || strings.TrimSpace(string(got)) != callers {
		t.Errorf("the container's first process has a timer slack of %q, want %s (%v)", got, callers, err)
	}
	c.Kill("KILL").WaitExit()
	c.Delete()
	for _, name := range []string{"createRuntime", "poststart", "poststop"} {
		said, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		slack, env, _ := strings.Cut(string(said), "\n")
		if slack != callers {
			t.Errorf("the hook %s has a timer slack of %s, want %s", name, slack, callers)
		}
		if strings.Contains(env, "GOMAXPROCS=") && os.Getenv("GOMAXPROCS") == "" {
			t.Errorf("the hook %s was given GOMAXPROCS:\n%s", name, env)
		}
	}
}
