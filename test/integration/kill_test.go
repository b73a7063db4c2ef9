package integration

import (
	"errors"
	"fmt"
	"os"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
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

// What asks a process to end ends a container that was not started yet, as it would end
// a program without handlers that is not the first of a PID namespace.
func TestKillCreatedBySignalsThatAskForTheEnd(t *testing.T) {
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT} {
		for _, kind := range []specs.LinuxNamespaceType{"", specs.PIDNamespace} {
			b := harness.New(t)
			c := b.Container("/inside", "look")
			harness.WithoutNamespace(c.Spec, kind)
			c.Create().Kill(unix.SignalName(signal))
			if status := c.WaitExit(); !status.Exited() || status.ExitStatus() != 128+int(signal) {
				t.Errorf("%s: ended with %#x", unix.SignalName(signal), status)
			}
			if status := c.State().Status; status != specs.StateStopped {
				t.Errorf("%s: the container is %s", unix.SignalName(signal), status)
			}
			c.Command("start", nil).Run().Fails(t, "cannot start a container that has stopped")
			c.Delete()
		}
	}
	// The program that is started has none of these handlers.
	b := harness.New(t)
	c := b.Container("/bin/grep", "-E", "Sig(Ign|Cgt|Blk)", "/proc/self/status")
	out, w := b.Pipe()
	c.Stdout = w
	c.Create().Start()
	w.Close()
	status := out.All()
	for _, field := range []string{"SigIgn", "SigBlk", "SigCgt"} {
		if got := statusField(status, field); got != "0000000000000000" {
			t.Errorf("%s of the started process: %q", field, got)
		}
	}
	c.WaitExit()
}

// withAnother runs a container without a PID namespace. The script starts another process and tells
// its pid.
func withAnother(b *harness.Box, script string) (c *harness.Container, pid int) {
	b.T.Helper()
	c = b.Container("/bin/sh", "-c", script)
	harness.WithoutNamespace(c.Spec, "pid")
	out, w := b.Pipe()
	c.Stdout = w
	c.RunDetached()
	w.Close()
	if _, err := fmt.Sscan(out.Line(), &pid); err != nil {
		b.T.Fatal(err)
	}
	return c, pid
}

// Without a PID namespace nothing ends the other processes with the first one: they are still the
// container's, and KILL reaches them.
func TestKillReachesWhatIsLeftInASharedPIDNamespace(t *testing.T) {
	b := harness.New(t)
	c, pid := withAnother(b, "sleep 100000 & echo $!; exec 1>&-; sleep 100000 & exit 0")
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

// SIGKILL ends the container, and that is all its processes.
func TestKillWithoutAPIDNamespace(t *testing.T) {
	b := harness.New(t)
	c, pid := withAnother(b, "sleep 100000 & echo $!; exec 1>&-; sleep 100000")
	c.Kill("KILL").WaitExit()
	b.WaitGone(pid)
	b.ReapOrphans()
	c.Delete()
	c, pid = withAnother(b, "sleep 100000 & echo $!; exec 1>&-; wait")
	c.Kill("TERM").WaitExit() // any other is for the first process alone
	if err := unix.Kill(pid, 0); err != nil {
		t.Errorf("TERM reached process %d: %v", pid, err)
	}
	c.Delete()
	b.WaitGone(pid)
	b.ReapOrphans()
}

// What an engine calls to be sure is no error where there is nothing to do.
func TestKillAllOfAStoppedContainer(t *testing.T) {
	for _, kind := range []specs.LinuxNamespaceType{"", specs.PIDNamespace} {
		b := harness.New(t)
		c := b.Container("/bin/true")
		harness.WithoutNamespace(c.Spec, kind)
		c.RunDetached().WaitExit()
		c.Command("kill", []string{"--all"}, "KILL").Run().OK(t)
		c.Command("kill", []string{"-a"}, "TERM").Run().OK(t)
		c.Command("kill", nil, "KILL").Run().Fails(t, "container not running")
		c.Delete()
		c.Command("kill", []string{"--all"}, "KILL").Run().Fails(t, "container does not exist")
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
