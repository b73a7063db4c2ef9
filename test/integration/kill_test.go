package integration

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

func TestKillTakesNamesAndNumbers(t *testing.T) {
	b := harness.New(t)
	c, out := signalled(b)
	for _, test := range []struct{ word, got string }{
		{"USR1", "SIGUSR1"}, {"SIGUSR1", "SIGUSR1"}, {"usr2", "SIGUSR2"}, {"sigusr2", "SIGUSR2"},
		{"1", "SIGHUP"}, {"INT", "SIGINT"}, {"40", "40"}, {"28", "SIGWINCH"},
	} {
		c.Kill(test.word)
		if got := out.Line(); got != test.got {
			t.Errorf("kill %s: the container got %s", test.word, got)
		}
	}
	// The default.
	c.Command("kill", nil).Run().OK(t)
	if got := out.Line(); got != "SIGTERM" {
		t.Errorf("kill without a signal: the container got %s", got)
	}
	c.WaitExit()
}

func TestKillProbe(t *testing.T) {
	b := harness.New(t)
	c, out := signalled(b)
	c.Kill("0")
	c.Kill("TERM")
	if got := out.Line(); got != "SIGTERM" {
		t.Errorf("the container got %s", got)
	}
	c.WaitExit()
	c.Command("kill", nil, "0").Run().Fails(t, "container not running")
}

func TestKillRefusals(t *testing.T) {
	b := harness.New(t)
	c, _ := signalled(b)
	for _, word := range []string{"NOSUCH", "SIGNOSUCH", "65", "-1", "1x", ""} {
		r := c.Command("kill", nil, word).Run()
		r.Fails(t)
	}
	b.Berth("kill", "nobody", "TERM").Fails(t, "container does not exist")
	c.Kill("KILL").WaitExit()
	c.Command("kill", nil, "TERM").Run().Fails(t, "container not running")
	c.Command("kill", nil, "KILL").Run().Fails(t, "container not running")
	c.Delete()
}

// containerd passes --all, and so do older clients.
func TestKillAll(t *testing.T) {
	for _, flag := range []string{"--all", "-a"} {
		t.Run(flag, func(t *testing.T) {
			b := harness.New(t)
			c, out := signalled(b)
			c.Command("kill", []string{flag}, "KILL").Run().OK(t)
			if status := c.WaitExit(); status.Signal() != unix.SIGKILL {
				t.Errorf("ended with %v", status)
			}
			out.All()
		})
	}
}

func TestKillCreated(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true").Create()
	c.Kill("KILL")
	if status := c.WaitExit(); status.Signal() != unix.SIGKILL {
		t.Errorf("ended with %v", status)
	}
}

// Without a PID namespace nothing ends the other processes with the first one: they are still the container's, and KILL reaches them.
func TestKillReachesWhatIsLeftInASharedPIDNamespace(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "sleep 100000 & echo $!; exec 1>&-; sleep 100000 & exit 0")
	harness.WithoutNamespace(c.Spec, "pid")
	out, w := b.Pipe()
	c.Stdout = w
	c.RunDetached()
	w.Close()
	var pid int
	if _, err := fmt.Sscan(out.Line(), &pid); err != nil {
		t.Fatal(err)
	}
	c.WaitExit()
	if err := unix.Kill(pid, 0); err != nil {
		t.Fatalf("the test wants a process that is left: %v", err)
	}
	c.Command("kill", []string{"--all"}, "KILL").Run().OK(t)
	b.WaitGone(pid)
	b.ReapOrphans()
	c.Delete()
	if err := unix.Kill(pid, 0); !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, unix.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
}

// signalled starts a container whose process says which signals it gets.
func signalled(b *harness.Box) (*harness.Container, *harness.Stream) {
	b.T.Helper()
	c := b.Container("/inside", "signals")
	out, w := b.Pipe()
	c.Stdin, _ = b.Held()
	c.Stdout = w
	c.RunDetached()
	w.Close()
	out.Until("ready\n")
	return c, out
}
