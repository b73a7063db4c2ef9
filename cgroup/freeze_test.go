package cgroup

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestFreezeAndThaw(t *testing.T) {
	host := hostForTest(t)
	g := makeGroup(t, host)
	cmd := start(t, g, "count")
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	if on, err := g.Frozen(); !on || err != nil {
		t.Fatalf("frozen %v, %v", on, err)
	}
	if err := g.Join(os.Getpid()); !errors.Is(err, ErrFrozen) {
		t.Fatalf("a process may join a frozen group: %v", err)
	}
	if _, err := g.CloneFD(); !errors.Is(err, ErrFrozen) {
		t.Fatalf("a process may be cloned into a frozen group: %v", err)
	}
	before := cpuTime(t, cmd.Process.Pid)
	busyFor(30 * time.Millisecond)
	if after := cpuTime(t, cmd.Process.Pid); after != before {
		t.Errorf("it ran while it was frozen: %d, then %d ticks", before, after)
	}
	if err := g.Thaw(); err != nil {
		t.Fatal(err)
	}
	if on, err := g.Frozen(); on || err != nil {
		t.Fatalf("frozen %v, %v", on, err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for cpuTime(t, cmd.Process.Pid) == before {
		if time.Now().After(deadline) {
			t.Fatal("it does not run again")
		}
		busyFor(time.Millisecond)
	}
}

// Processes that another tool put into version 1 alone are found.
func TestHybridWithProcessesOnVersion1Only(t *testing.T) {
	host := hostForTest(t)
	if host.Unified() == nil || host.Controller("freezer") == nil || host.Controller("freezer").Version != 1 {
		t.Skip("this host has not both freezers")
	}
	g := makeGroup(t, host)
	v1, err := host.Open(g.Path(), Only("freezer"), Made(g.Made()))
	if err != nil {
		t.Fatal(err)
	}
	defer v1.Close()
	cmd := start(t, v1, "sleep")
	if pids, err := g.Procs(); err != nil || !slices.Equal(pids, []int{cmd.Process.Pid}) {
		t.Errorf("processes %v, %v", pids, err)
	}
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	if state, err := v1.Frozen(); err != nil || !state {
		t.Errorf("frozen %v, %v", state, err)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
}

func cpuTime(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return user + system
}

// busyFor lets the clock go on; it is for looking whether something happens meanwhile.
func busyFor(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}
