package integration

import (
	"os"
	"strings"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// heldUp is a hook that does not end, and a wait for its start.
func heldUp(b *harness.Box, name string) (specs.Hook, func()) {
	b.T.Helper()
	fifo := b.Path(name)
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		b.T.Fatal(err)
	}
	f, err := os.OpenFile(fifo, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(func() { f.Close() })
	hook := specs.Hook{Path: "/bin/sh", Args: []string{"sh", "-c", "echo ready > " + fifo + "; sleep 100000 & wait"}}
	return hook, func() {
		b.T.Helper()
		if err := f.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			b.T.Fatal(err)
		}
		if _, err := f.Read(make([]byte, 6)); err != nil {
			b.T.Fatalf("the hook does not begin: %v", err)
		}
	}
}

// within20 runs a command that must not wait for another one without a bound.
func within20(t *testing.T, b *harness.Box, args ...string) harness.Result {
	t.Helper()
	ended := make(chan struct{})
	running := b.Command(args...).Start()
	go func() {
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Errorf("berth %s hangs", strings.Join(args, " "))
			_ = unix.Kill(running.PID, unix.SIGKILL)
		}
	}()
	r := running.Wait()
	close(ended)
	return r
}

// A container whose create hangs in a hook can be looked at, answers every command, and can be
// deleted by force: its create fails then.
func TestHookThatHangsInCreate(t *testing.T) {
	for _, kind := range []string{"prestart", "createRuntime", "createContainer"} {
		t.Run(kind, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/true")
			h := hooked{Container: c, calls: b.WriteFile("calls", "", 0o666)}
			hook, began := heldUp(b, "began")
			c.Spec.Hooks = &specs.Hooks{}
			*h.kind(kind) = []specs.Hook{hook}
			c.Spec.Hooks.Poststop = []specs.Hook{h.record("poststop", "poststop-1")}
			c.Write()
			create := c.Command("create", nil).Start()
			began()
			if s := c.State(); s.Status != "creating" {
				t.Errorf("its status is %s", s.Status)
			}
			within20(t, b, "list").OK(t)
			// None of them waits for the create.
			for _, words := range [][]string{{"start", c.ID}, {"delete", c.ID}, {"update", "--pids-limit", "9", c.ID}} {
				within20(t, b, words...).Fails(t, c.ID, "it is being created by process")
			}
			within20(t, b, "kill", c.ID, "TERM").Fails(t, c.ID, "it has no process yet", "container not running")
			within20(t, b, "delete", "--force", c.ID).OK(t)
			create.Wait().Fails(t, "/hooks/"+kind+"/0", "deleted by force")
			if got := h.names(); len(got) != 1 || got[0] != "poststop-1" {
				t.Errorf("the hooks that have run are %q", got)
			}
			b.Berth("state", c.ID).Fails(t, "container does not exist")
			b.ReapOrphans()
		})
	}
}

// The same of a start that hangs in a hook after the container's process has begun.
func TestHookThatHangsInStart(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang")
	hook, began := heldUp(b, "began")
	c.Spec.Hooks = &specs.Hooks{Poststart: []specs.Hook{hook}}
	c.Create()
	start := c.Command("start", nil).Start()
	began()
	within20(t, b, "delete", "--force", c.ID).OK(t)
	start.Wait().Fails(t, "/hooks/poststart/0", "deleted by force")
	c.WaitExit()
	b.Berth("state", c.ID).Fails(t, "container does not exist")
	b.ReapOrphans()
}
