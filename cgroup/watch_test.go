package cgroup

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
)

func newWatcher(t testing.TB) *Watcher {
	t.Helper()
	w, err := NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// await receives events until the wanted one comes.
func await(t testing.TB, w *Watcher, kind Kind) Event {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case event, open := <-w.Events():
			if !open {
				t.Fatalf("the events ended before %v", kind)
			}
			if event.Kind == kind {
				return event
			}
		case <-deadline:
			t.Fatalf("no %v came", kind)
		}
	}
}

func watch(t testing.TB, w *Watcher, g *Group, kinds Kind) {
	t.Helper()
	can, err := w.Watch(g, kinds)
	if err != nil {
		t.Fatal(err)
	}
	if can != kinds {
		t.Skipf("this host cannot tell of %v", kinds&^can)
	}
}

func TestWatchProcesses(t *testing.T) {
	host := hostForTest(t)
	w := newWatcher(t)
	g := makeGroup(t, host)
	watch(t, w, g, Populated|Empty)
	start(t, g, "sleep")
	if e := await(t, w, Populated); e.Group != g {
		t.Errorf("got %+v", e)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, w, Empty)
}

func TestWatchFreezer(t *testing.T) {
	host := hostForTest(t)
	w := newWatcher(t)
	g := makeGroup(t, host)
	watch(t, w, g, Frozen|Thawed)
	start(t, g, "sleep")
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	await(t, w, Frozen)
	if err := g.Thaw(); err != nil {
		t.Fatal(err)
	}
	await(t, w, Thawed)
}

func TestWatchMemory(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "memory")
	w := newWatcher(t)
	g := makeGroup(t, host)
	limit := int64(24 << 20)
	set(t, g, &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit, Swap: &limit}})
	watch(t, w, g, OOM|OOMKill)
	run(t, g, "eat:64")
	seen := map[Kind]Event{}
	deadline := time.After(30 * time.Second)
	for len(seen) < 2 {
		select {
		case e := <-w.Events():
			seen[e.Kind] = e
		case <-deadline:
			t.Fatalf("events %v", seen)
		}
	}
	if kill := seen[OOMKill]; kill.New != 1 || kill.Total != 1 {
		t.Errorf("got %+v", kill)
	}
}

func TestWatchPids(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "pids")
	w := newWatcher(t)
	g := makeGroup(t, host)
	limit := int64(20)
	set(t, g, &specs.LinuxResources{Pids: &specs.LinuxPids{Limit: &limit}})
	// On version 1 it comes with another event, which the end of the role is.
	if _, err := w.Watch(g, PidsMax|Empty); err != nil {
		t.Fatal(err)
	}
	run(t, g, "fork:40")
	if e := await(t, w, PidsMax); e.New == 0 || e.Total < e.New {
		t.Errorf("got %+v", e)
	}
}

func TestWatchHugetlb(t *testing.T) {
	host := hostForTest(t)
	if h := need(t, host, "hugetlb"); h.Version == 1 {
		t.Skip("version 1 tells nobody")
	}
	hugePages(t, 4)
	restoreSubtreeControl(t, host.Unified())
	w := newWatcher(t)
	g := makeGroup(t, host)
	// The fault limit: a reservation that is refused is no event.
	set(t, g, &specs.LinuxResources{Unified: map[string]string{"hugetlb.2MB.max": "2097152"}})
	watch(t, w, g, HugetlbMax)
	run(t, g, "huge:3")
	if e := await(t, w, HugetlbMax); e.Detail != "2MB" {
		t.Errorf("got %+v", e)
	}
}

func TestWatchPressure(t *testing.T) {
	host := hostForTest(t)
	w := newWatcher(t)
	g := makeGroup(t, host)
	err := w.WatchPressure(g, PressureTrigger{Resource: "cpu", Stall: 20 * time.Millisecond, Window: 2 * time.Second})
	if host.Unified() == nil {
		if !errors.Is(err, ErrNoController) {
			t.Errorf("got %v", err)
		}
		t.Skip("no version 2 here")
	}
	if err != nil {
		if strings.Contains(err.Error(), "no PSI") || errors.Is(err, os.ErrPermission) {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	if err := w.WatchPressure(g, PressureTrigger{Resource: "cpu", Stall: time.Second, Window: time.Millisecond}); err == nil {
		t.Error("a window shorter than the stall was taken")
	}
	// More work than processors.
	for range runtime.NumCPU() + 4 {
		start(t, g, "count")
	}
	if e := await(t, w, Stalled); e.Detail != "cpu" {
		t.Errorf("got %+v", e)
	}
}

func TestWatchRemoval(t *testing.T) {
	host := hostForTest(t)
	w := newWatcher(t)
	for _, only := range []string{"unified", "memory"} {
		t.Run(only, func(t *testing.T) {
			if host.Controller(only) == nil && (only != "unified" || host.Unified() == nil) {
				t.Skipf("no %s here", only)
			}
			g, err := host.Create(testPath(), Only(only))
			if err != nil {
				t.Fatal(err)
			}
			watch(t, w, g, Removed)
			if err := g.Destroy(); err != nil {
				t.Fatal(err)
			}
			if e := await(t, w, Removed); e.Group != g {
				t.Errorf("got %+v", e)
			}
		})
	}
}

// On a host with version 1 alone, the end of the last process is told.
func TestWatchEmptyOnVersion1(t *testing.T) {
	host := hostForTest(t)
	if h := need(t, host, "pids"); h.Version == 2 {
		t.Skip("no version 1 here")
	}
	w := newWatcher(t)
	g := makeGroup(t, host, Only("pids"))
	start(t, g, "sleep")
	start(t, g, "sleep")
	can, err := w.Watch(g, Populated|Empty|Frozen)
	if err != nil || can != Empty {
		t.Fatalf("can tell of %v, %v", can, err)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, w, Empty)
}

func TestWatcherGivesBackItsDescriptors(t *testing.T) {
	host := hostForTest(t)
	before := openDescriptors(t)
	g := makeGroup(t, host)
	for range 3 {
		w, err := NewWatcher()
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := w.Watch(g, ^Kind(0)); err != nil {
				t.Fatal(err)
			}
		}
		w.Forget(g)
		if _, err := w.Watch(g, ^Kind(0)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if _, open := <-w.Events(); open {
			t.Error("an event after Close")
		}
		if _, err := w.Watch(g, OOM); !errors.Is(err, os.ErrClosed) {
			t.Errorf("watch after Close: %v", err)
		}
	}
	g.Close()
	if after := openDescriptors(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

func openDescriptors(t testing.TB) int {
	t.Helper()
	// From the first file on that Go waits for, its poller keeps two for ever.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	w.Close()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestWatchManyGroups(t *testing.T) {
	host := hostForTest(t)
	if host.Unified() == nil {
		t.Skip("no version 2 here")
	}
	w := newWatcher(t)
	parent := makeGroup(t, host, Only("unified"))
	var groups []*Group
	for i := range 200 {
		g, err := host.Create(parent.Path()+"/"+strconv.Itoa(i), Only("unified"), Enable())
		if err != nil {
			t.Fatal(err)
		}
		g.Close()
		watch(t, w, g, Populated|Empty)
		groups = append(groups, g)
	}
	last := groups[len(groups)-1]
	start(t, last, "sleep")
	if e := await(t, w, Populated); e.Group != last {
		t.Errorf("got %+v", e)
	}
	for _, g := range groups[:100] {
		w.Forget(g)
	}
	if err := parent.Kill(); err != nil {
		t.Fatal(err)
	}
	if e := await(t, w, Empty); e.Group != last {
		t.Errorf("got %+v", e)
	}
}

func TestKindNames(t *testing.T) {
	if got := (OOM | Removed).String(); got != "oom,removed" {
		t.Errorf("got %q", got)
	}
}
