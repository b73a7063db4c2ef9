package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

func TestRunReturnsTheStatus(t *testing.T) {
	for _, test := range []struct {
		name   string
		script string
		code   int
	}{
		{"success", "exit 0", 0},
		{"failure", "exit 1", 1},
		{"high", "exit 255", 255},
		{"terminated", "kill -TERM $$", 128 + 15},
		{"killed", "kill -KILL $$", 128 + 9},
		{"abort", "kill -ABRT $$", 128 + 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/sh", "-c", test.script)
			// The first process of a PID namespace is spared by signals of its own that it doesn't
			// handle.
			harness.WithoutNamespace(c.Spec, "pid")
			c.Run().Exits(t, test.code)
		})
	}
}

func TestRunPassesStandardStreams(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "cat; echo to-stderr >&2")
	in, err := os.Open(b.WriteFile("input", "one\ntwo\n", 0o644))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	c.Stdin = in
	r := c.Run().OK(t)
	if r.Stdout != "one\ntwo\n" || r.Stderr != "to-stderr\n" {
		t.Errorf("stdout %q, stderr %q", r.Stdout, r.Stderr)
	}
}

// Data through pipes must come through whole, and the end of the input must reach the container.
func TestRunPassesPipes(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "wc -c")
	out, w := b.Pipe()
	r, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := c.Command("run", nil)
	cmd.Stdin, cmd.Stdout = r, w
	running := cmd.Start()
	w.Close()
	if _, err := in.WriteString(strings.Repeat("x", 300_000)); err != nil {
		t.Fatal(err)
	}
	in.Close()
	if got := out.All(); strings.TrimSpace(got) != "300000" {
		t.Errorf("wc -c said %q", got)
	}
	running.Wait().OK(t)
}

func TestRunForwardsSignals(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "signals")
	out, w := b.Pipe()
	cmd := c.Command("run", nil)
	cmd.Stdin, _ = b.Held()
	cmd.Stdout = w
	running := cmd.Start()
	w.Close()
	out.Until("ready\n")
	for _, s := range []unix.Signal{unix.SIGUSR1, unix.SIGUSR2, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGCONT, unix.Signal(40), unix.SIGTERM} {
		running.Signal(s)
		want := unix.SignalName(s)
		if want == "" {
			want = "40"
		}
		if got := out.Line(); got != want {
			t.Errorf("sent %v, the container got %q", s, got)
		}
	}
	running.Wait().OK(t)
}

func TestRunRemovesTheContainer(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Run().OK(t)
	b.Berth("state", c.ID).Fails(t, "container does not exist")
}

func TestRunKeep(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "exit 3")
	c.Run("--keep").Exits(t, 3)
	s := c.State()
	if s.Status != "stopped" || s.Pid != 0 {
		t.Errorf("status %s, pid %d", s.Status, s.Pid)
	}
	c.Delete()
	b.Berth("state", c.ID).Fails(t, "container does not exist")
}

func TestRunDetached(t *testing.T) {
	b := harness.New(t)
	c, out := signalled(b)
	if s := c.State(); s.Status != "running" || s.Pid != c.PID {
		t.Errorf("state %+v, want running with pid %d", s, c.PID)
	}
	c.Kill("TERM")
	out.Until("SIGTERM\n")
	if status := c.WaitExit(); !status.Exited() || status.ExitStatus() != 0 {
		t.Errorf("the container's process ended with %v", status)
	}
	if s := c.State(); s.Status != "stopped" || s.Pid != 0 {
		t.Errorf("status %s, pid %d after its end", s.Status, s.Pid)
	}
	c.Delete()
}

// With one dash, as older clients write them, and with "=".
func TestRunFlagSpellings(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Write()
	b.Berth("run", "-bundle", c.Dir, c.ID).OK(t)
	b.Berth("run", "-b", c.Dir, c.ID).OK(t)
	b.Berth("run", "--bundle="+c.Dir, c.ID).OK(t)
	b.Berth("run", "-bundle="+c.Dir, "--no-pivot=false", c.ID).OK(t)
	b.Globals = []string{"-root=" + b.Root}
	b.Berth("run", "-b", c.Dir, c.ID).OK(t)
}

func TestRunTakesTheBundleFromTheWorkingFolder(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "echo here")
	c.Write()
	cmd := b.Command("run", c.ID)
	cmd.Dir = c.Dir
	if r := cmd.Run().OK(t); r.Stdout != "here\n" {
		t.Errorf("stdout %q", r.Stdout)
	}
	cmd = b.Command("run", "--bundle", filepath.Base(c.Dir), c.ID)
	cmd.Dir = b.Dir
	cmd.Run().OK(t)
}

func TestRunNeedsAnID(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Write()
	r := b.Berth("run", "--bundle", c.Dir)
	if r.Code != 1 || r.Stderr == "" {
		t.Errorf("exit status %d, %q", r.Code, r.Stderr)
	}
	if r := b.Berth("run", "--bundle", c.Dir, c.ID, "more"); r.Code != 1 || r.Stderr == "" {
		t.Errorf("with an argument too many: exit status %d, %q", r.Code, r.Stderr)
	}
}
