package integration

import (
	"fmt"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// Killed at any instant, create leaves something that delete --force removes without a trace.
// strace finds the instants: it kills whoever of the engine's processes and threads first comes to
// its Nth system call, for growing N, until none comes so far.
func TestDeleteForceAfterKilledCreate(t *testing.T) {
	harness.NeedContainers(t)
	strace := harness.NeedTool(t, "strace", "strace")
	const step = 5
	for n, whole := step, false; !whole; n += step {
		passed := t.Run(strconv.Itoa(n), func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/true")
			trace := b.Path("trace")
			cmd := c.Command("create", []string{"--pid-file", b.Path("pid")})
			// With -D the engine is this process's child, and strace a process beside it, which
			// ends with the last that it traces.
			cmd.Wrap = []string{strace, "-D", "-f", "-qq", "-o", trace, "-e", fmt.Sprintf("inject=all:signal=KILL:when=%d", n)}
			r := cmd.Run()
			c.Command("delete", []string{"--force"}).Run().OK(t)
			b.ReapOrphans()
			whole = r.Code == 0
		})
		if !passed {
			return
		}
	}
}

// Killed while the container runs, run leaves a container that other commands can still handle.
func TestKilledForegroundRun(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "signals")
	out, w := b.Pipe()
	cmd := c.Command("run", []string{"--pid-file", b.Path("pid")})
	cmd.Stdout = w
	stdin, hold := b.Held()
	defer hold.Close()
	cmd.Stdin = stdin
	running := cmd.Start()
	w.Close()
	out.Until("ready\n")
	running.Signal(unix.SIGKILL)
	running.Wait()
	// Whether the container goes on without it is the engine's choice.
	if s := c.State(); s.Status != "running" && s.Status != "stopped" {
		t.Errorf("status %s", s.Status)
	}
	c.Delete("--force")
	b.ReapOrphans()
}
