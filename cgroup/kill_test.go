package cgroup

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestJoinAndKill(t *testing.T) {
	host := hostForTest(t)
	g := makeGroup(t, host)
	cmd := start(t, g, "sleep")
	pids, err := g.Procs()
	if err != nil || !slices.Equal(pids, []int{cmd.Process.Pid}) {
		t.Fatalf("processes %v, %v; want %d", pids, err, cmd.Process.Pid)
	}
	list, err := host.memberships(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if m.path != g.Path() {
			t.Errorf("the process is in %s in %v", m.path, m)
		}
	}
	if on, err := g.Populated(); !on || err != nil {
		t.Errorf("populated %v, %v", on, err)
	}
	same, err := host.OfProcess(cmd.Process.Pid)
	if err != nil || same.Path() != g.Path() {
		t.Fatalf("the group of the process is %v, %v", same, err)
	}
	same.Close()
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := g.WaitEmpty(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
	if on, err := g.Populated(); on || err != nil {
		t.Errorf("populated %v, %v", on, err)
	}
}

// Both freezers, where both are there, and what was frozen dies by Kill.
func TestKillFrozen(t *testing.T) {
	host := hostForTest(t)
	for _, only := range [][]string{{"freezer"}, {"unified"}, nil} {
		t.Run(strings.Join(only, ""), func(t *testing.T) {
			if only != nil && !(only[0] == "unified" && host.Unified() != nil || host.Controller(only[0]) != nil) {
				t.Skipf("no %s here", only[0])
			}
			var opts []Option
			if only != nil {
				opts = append(opts, Only(only...))
			}
			g := makeGroup(t, host, opts...)
			cmd := start(t, g, "sleep")
			if err := g.Freeze(); err != nil {
				t.Fatal(err)
			}
			if err := g.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := g.WaitEmpty(); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
		})
	}
}

func TestKillStormOfForks(t *testing.T) {
	host := hostForTest(t)
	for _, only := range []string{"unified", "freezer", "pids"} {
		t.Run(only, func(t *testing.T) {
			if host.Controller(only) == nil && (only != "unified" || host.Unified() == nil) {
				t.Skipf("no %s here", only)
			}
			g := makeGroup(t, host, Only(only))
			cmd := start(t, g, "forks")
			deadline := time.Now().Add(20 * time.Second)
			for {
				pids, err := g.Procs()
				if err != nil {
					t.Fatal(err)
				}
				if len(pids) >= 3 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("it does not fork")
				}
			}
			if err := g.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := g.WaitEmpty(); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
		})
	}
}

func TestSignal(t *testing.T) {
	host := hostForTest(t)
	g := makeGroup(t, host)
	cmd := start(t, g, "sleep")
	if err := g.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
}
