package cgroup

import (
	"bufio"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/opencontainers/runtime-spec/specs-go"
)

func TestMemoryLimitKills(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "memory")
	g := makeGroup(t, host)
	limit := int64(32 << 20)
	set(t, g, &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit, Swap: &limit}})
	if _, state := run(t, g, "eat:8"); !state.Success() {
		t.Errorf("8 MiB under a limit of 32: %v", state)
	}
	_, state := run(t, g, "eat:64")
	if status := state.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("64 MiB under a limit of 32: %v", state)
	}
}

func TestMemoryRoundingIsReported(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "memory")
	g := makeGroup(t, host)
	limit := int64(32<<20 + 100)
	report := set(t, g, &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit}})
	if len(report.Differences) != 1 || report.Differences[0].Holds != strconv.Itoa(32<<20) || report.Differences[0].Pointer != "/memory/limit" {
		t.Errorf("differences %v", report.Differences)
	}
}

func TestLowerAndRaiseMemory(t *testing.T) {
	host := hostForTest(t)
	h := need(t, host, "memory")
	g := makeGroup(t, host)
	// Each step crosses the other value of the step before.
	for _, mib := range []int64{64, 256, 32, 128} {
		limit := mib << 20
		swap := 2 * limit
		set(t, g, &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit, Swap: &swap}})
		file := "memory.limit_in_bytes"
		if h.Version == 2 {
			file = "memory.max"
		}
		if got := readFileOf(t, g, "memory", file); got != strconv.FormatInt(limit, 10) {
			t.Errorf("the limit is %s, want %d", got, limit)
		}
	}
}

// Lowered below the use, files are given up before a process is killed, and
// memory.high is what it was.
func TestLowerMemoryReclaimsFirst(t *testing.T) {
	host := hostForTest(t)
	if h := need(t, host, "memory"); h.Version == 1 {
		t.Skip("version 1 reclaims in the write of the limit")
	}
	g := makeGroup(t, host)
	high := "90000000"
	set(t, g, &specs.LinuxResources{Unified: map[string]string{"memory.high": high}})
	// What is not on the disk yet can't be given up.
	cmd := roleCommand("files:48")
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if word, err := bufio.NewReader(said).ReadString('\n'); word != "synced\n" {
		t.Fatalf("it said %q, %v", word, err)
	}
	limit := int64(24 << 20)
	report := set(t, g, &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit}})
	if len(report.Differences) > 0 {
		t.Errorf("differences %v", report.Differences)
	}
	if got := readFileOf(t, g, "memory", "memory.max"); got != strconv.FormatInt(limit, 10) {
		t.Errorf("memory.max is %s", got)
	}
	if got := readFileOf(t, g, "memory", "memory.high"); got != "89997312" {
		t.Errorf("memory.high is %s, was %s", got, high)
	}
	stats, err := g.Stats(Memory)
	if err != nil {
		t.Fatal(err)
	}
	num(t, "kills", stats.Memory.Events.OOMKill, 0)
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process: %v", err)
	}
}

func TestCheckBeforeUpdate(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "memory")
	g := makeGroup(t, host)
	start(t, g, "hold:32")
	waitForUse(t, g, 32<<20)
	limit, check := int64(4<<20), true
	_, err := g.Set(&specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit, CheckBeforeUpdate: &check}})
	var fields ledger.Errors
	if !errors.As(err, &fields) || fields[0].Pointer != "/memory/limit" || !strings.Contains(err.Error(), "uses") {
		t.Errorf("got %v", err)
	}
}

// A version 1 limit that cannot be reached is refused with the present use.
func TestRefusedLimitNamesUse(t *testing.T) {
	host := hostForTest(t)
	if h := need(t, host, "memory"); h.Version == 2 {
		t.Skip("version 2 kills instead")
	}
	g := makeGroup(t, host)
	start(t, g, "hold:32")
	waitForUse(t, g, 32<<20)
	limit := int64(4 << 20)
	_, err := g.Set(&specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit, Swap: &limit}})
	if !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "bytes now") {
		t.Errorf("got %v", err)
	}
}

func waitForUse(t testing.TB, g *Group, bytes uint64) {
	t.Helper()
	n := g.node("memory")
	file := "memory.usage_in_bytes"
	if n.Version == 2 {
		file = "memory.current"
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		if use, _ := g.number(n, file); use >= bytes {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the memory is not used")
		}
	}
}

// A refused limit says what it ran into, in numbers that are limits.
func TestRefusedMemoryLimitSaysWhy(t *testing.T) {
	host := hostForTest(t)
	if h := need(t, host, "memory"); h.Version != 1 {
		t.Skip("needs the memory controller on cgroup v1: v2 takes any limit, and reclaims or kills")
	}
	g := makeGroup(t, host)
	if _, err := os.Stat(g.node("memory").full("memory.memsw.limit_in_bytes")); err != nil {
		t.Skip("the kernel doesn't account swap: ", err)
	}
	write := ledger.Write{Controller: "memory", File: "memory.limit_in_bytes", Value: "none", Pointer: "/memory/limit"}
	if _, err := g.Apply([]ledger.Write{write}); err == nil || !strings.Contains(err.Error(), " bytes now") || strings.Contains(err.Error(), "922337") {
		t.Errorf("without another limit: %v", err)
	}
	limit, both := int64(32<<20), int64(64<<20)
	set(t, g, &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit, Swap: &both}})
	write.Value = strconv.Itoa(128 << 20)
	if _, err := g.Apply([]ledger.Write{write}); err == nil || !strings.Contains(err.Error(), "memory and swap together may use 67108864") {
		t.Errorf("above that of memory and swap: %v", err)
	}
}

// A group that is in the hierarchies of some controllers only says so, and blames no kernel.
func TestLimitOfAControllerThatTheGroupIsNotIn(t *testing.T) {
	host := hostForTest(t)
	for _, controller := range []string{"memory", "pids"} {
		if h := need(t, host, controller); h.Version != 1 {
			t.Skip("needs ", controller, " on cgroup v1")
		}
	}
	name := testPath()
	made, err := host.Create(name, Only("memory"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := made.Destroy(); err != nil {
			t.Error(err)
		}
	}()
	g, err := host.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	limit := int64(5)
	_, err = g.Set(&specs.LinuxResources{Pids: &specs.LinuxPids{Limit: &limit}})
	if err == nil || !strings.Contains(err.Error(), "/pids/limit: the cgroup is not in the hierarchy of the pids controller") {
		t.Errorf("%v", err)
	}
}
