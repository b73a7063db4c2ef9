package attacks

import (
	"os"
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// A process whose main thread has ended is a zombie by its letter in /proc, and lives on in its
// other threads. It runs as long as one does.
func TestMainThreadEnds(t *testing.T) {
	for name, change := range map[string]func(s *specs.Spec){
		"own pids":    func(*specs.Spec) {},
		"shared pids": func(s *specs.Spec) { harness.WithoutNamespace(s, specs.PIDNamespace) },
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/inside", "headless")
			change(c.Spec)
			out, w := b.Pipe()
			c.Stdout = w
			c.RunDetached()
			w.Close()
			out.Until("headless\n")
			wait.Until(t, "the main thread is a zombie", func() bool {
				_, state := harness.Parent(c.PID)
				return state == "Z"
			})
			if s := c.State(); s.Status != "running" || s.Pid != c.PID {
				t.Errorf("it is %s, pid %d", s.Status, s.Pid)
			}
			c.Command("delete", nil).Run().Fails(t, "running")
			if err := unix.Kill(c.PID, 0); err != nil {
				t.Errorf("after a delete that was refused: %v", err)
			}
			c.Kill("KILL")
			if status := c.WaitExit(); status.Signal() != unix.SIGKILL {
				t.Errorf("it ended with %v", status)
			}
			if s := c.State(); s.Status != "stopped" {
				t.Errorf("then it is %s", s.Status)
			}
			c.Delete()
			harness.Report(t, "attacks", 3)
		})
	}
}

// Who calls from another time namespace sees other start times, and the same containers.
func TestCallFromAnotherTimeNamespace(t *testing.T) {
	harness.NeedNamespace(t, "time")
	unshare := harness.NeedTool(t, "unshare", "util-linux")
	b := harness.New(t)
	for _, there := range []bool{false, true} {
		elsewhere := func(c *harness.Command) harness.Result {
			c.Wrap = []string{unshare, "--time", "--boottime", "86400", "--monotonic", "7", "--fork"}
			return c.Run()
		}
		c := b.Container("/inside", "hang")
		look, from := elsewhere, "another time namespace"
		if !there {
			c.RunDetached()
		} else {
			pidFile := b.Path("pid")
			elsewhere(c.Command("run", []string{"--detach", "--pid-file", pidFile})).OK(t)
			data, err := os.ReadFile(pidFile)
			check(t, err)
			c.PID, err = strconv.Atoi(string(data))
			check(t, err)
			look, from = (*harness.Command).Run, "the host's, made in another"
		}
		var s harness.State
		harness.Decode(t, look(c.Command("state", nil)).OK(t).Stdout, &s)
		if s.Status != "running" || s.Pid != c.PID {
			t.Errorf("seen from %s it is %s with pid %d, wanted %d", from, s.Status, s.Pid, c.PID)
		}
		look(c.Command("delete", nil)).Fails(t, "running")
		if err := unix.Kill(c.PID, 0); err != nil {
			t.Errorf("from %s: delete ended a running container: %v", from, err)
		}
		look(c.Command("kill", nil, "KILL")).OK(t)
		c.WaitExit()
		look(c.Command("delete", nil)).OK(t)
	}
	harness.Report(t, "attacks", 4)
}
