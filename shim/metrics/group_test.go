package metrics

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// group makes a cgroup of that name with a process in it; end removes both.
func group(t *testing.T, name string, limit int64) (pid int, end func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: cgroups of this name are made at the top")
	}
	h, err := cgroup.Detect()
	if err != nil {
		t.Fatal(err)
	}
	if h.Controller("memory") == nil {
		t.Skip("needs the memory controller")
	}
	g, err := h.Create(fmt.Sprintf("/berth-test-%d-%s", os.Getpid(), name))
	if err != nil {
		t.Fatal(err)
	}
	sleep := exec.Command("sleep", "1000")
	if err := errors.Join(sleep.Start(), g.Join(sleep.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Set(&specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit}}); err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		sleep.Process.Kill()
		sleep.Wait()
		if err := errors.Join(g.Destroy(), g.Close()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(end)
	return sleep.Process.Pid, end
}

// said gives the limit and the count of kills of a message.
func said(t *testing.T, g *Group) (limit, kills uint64) {
	t.Helper()
	kind, message, err := g.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if kind == wire.MetricsV1URL {
		var m wire.V1Metrics
		if err := wire.Unmarshal(message, &m); err != nil {
			t.Fatal(err)
		}
		return m.Memory.Usage.Limit, m.MemoryOOMControl.OOMKill
	}
	var m wire.V2Metrics
	if err := wire.Unmarshal(message, &m); err != nil {
		t.Fatal(err)
	}
	return m.Memory.UsageLimit, m.MemoryEvents.OOMKill
}

// A unit's cgroup goes before its counters are asked for; what it was
// limited to and how often it was killed for that are still known, then and
// after Close.
func TestUnitHasGone(t *testing.T) {
	const limit = 64 << 20
	pid, end := group(t, "c.scope", limit)
	g, err := OfProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	var told uint64
	stop, err := g.WatchOOM(func(kills uint64) { told = kills })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	watcher.told[g.group](2) // as the watch does when the kernel has killed
	end()
	if got, kills := said(t, g); got != limit || kills != 2 || told != 2 {
		t.Errorf("limit %d, %d kills, told of %d", got, kills, told)
	}
	g.Close()
	if got, kills := said(t, g); got != limit || kills != 2 {
		t.Errorf("after Close: limit %d, %d kills", got, kills)
	}
}

// A cgroup that is not a unit's is read when it is asked for, and not before.
func TestGroupHasGone(t *testing.T) {
	pid, end := group(t, "c", 64<<20)
	g, err := OfProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	end()
	if _, _, err := g.Stats(); !errors.Is(err, engine.ErrNoStats) {
		t.Errorf("stats of what has gone: %v", err)
	}
}
