package cgroup

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

func TestQuotaThrottles(t *testing.T) {
	host := hostForTest(t)
	h := need(t, host, "cpu")
	g := makeGroup(t, host)
	// So little that a busy machine gives it that much, too.
	quota, period := int64(1000), uint64(100000)
	set(t, g, &specs.LinuxResources{CPU: &specs.LinuxCPU{Quota: &quota, Period: &period}})
	start(t, g, "count")
	deadline := time.Now().Add(30 * time.Second)
	for {
		for key, value := range flatKeyed([]byte(readFileOf(t, g, "cpu", "cpu.stat"))) {
			if key == "nr_throttled" && value > 2 {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("not throttled on version %d: %s", h.Version, readFileOf(t, g, "cpu", "cpu.stat"))
		}
	}
}

// Quota, period and burst, raised and lowered, alone and together, below a
// parent whose share must not be exceeded at any moment.
func TestBandwidthSteps(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "cpu")
	parent := makeGroup(t, host)
	q, p := int64(50000), uint64(100000)
	set(t, parent, &specs.LinuxResources{CPU: &specs.LinuxCPU{Quota: &q, Period: &p}})
	g, err := host.Create(parent.Path() + "/x")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Destroy()
	steps := []struct {
		quota  int64
		period uint64
		burst  int64
	}{{40000, 100000, -1}, {8000, 20000, -1}, {400000, 1000000, -1}, {5000, 0, -1}, {40000, 100000, 20000},
		{10000, 0, 5000}, {0, 50000, -1}, {20000, 0, 20000}, {10000, 20000, 0}}
	for _, step := range steps {
		cpu := &specs.LinuxCPU{}
		if step.quota != 0 {
			cpu.Quota = &step.quota
		}
		if step.period != 0 {
			cpu.Period = &step.period
		}
		if step.burst >= 0 {
			burst := uint64(step.burst)
			cpu.Burst = &burst
			if h := host.Controller("cpu"); h.Version == 1 && !g.hasFile("cpu", "cpu.cfs_burst_us") {
				cpu.Burst = nil
			}
		}
		report, err := g.Set(&specs.LinuxResources{CPU: cpu})
		if err != nil {
			t.Errorf("%+v: %v", step, err)
		}
		if len(report.Differences) > 0 {
			t.Errorf("%+v: %v", step, report.Differences)
		}
	}
}

func TestCpusetBinds(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "cpuset")
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mask); err != nil {
		t.Fatal(err)
	}
	last := -1
	for i := range 1024 {
		if mask.IsSet(i) {
			last = i
		}
	}
	g := makeGroup(t, host)
	set(t, g, &specs.LinuxResources{CPU: &specs.LinuxCPU{Cpus: strconv.Itoa(last)}})
	out, _ := run(t, g, "affinity")
	if strings.TrimSpace(out) != strconv.Itoa(last) {
		t.Errorf("it may use processors %q, want %d", out, last)
	}
	// More than there is.
	_, err := g.Set(&specs.LinuxResources{CPU: &specs.LinuxCPU{Cpus: "0-4000"}})
	if err == nil && host.Controller("cpuset").Version == 1 {
		t.Error("processors that are not there were taken")
	}
	if err != nil && !strings.Contains(err.Error(), "/cpu/cpus: ") {
		t.Errorf("got %v", err)
	}
}

func TestRealtimeGoesUpTheParents(t *testing.T) {
	host := hostForTest(t)
	h := need(t, host, "cpu")
	if _, err := os.Stat(h.Mountpoint + "/cpu.rt_runtime_us"); h.Version == 2 || err != nil {
		t.Skip("this kernel does not divide real-time among groups")
	}
	top := testPath()
	g, err := host.Create(top + "/a/b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroup(t, g) })
	runtime, period := int64(2000), uint64(100000)
	set(t, g, &specs.LinuxResources{CPU: &specs.LinuxCPU{RealtimeRuntime: &runtime, RealtimePeriod: &period}})
	if got := readFileOf(t, g, "cpu", "cpu.rt_runtime_us"); got != "2000" {
		t.Errorf("runtime is %s", got)
	}
	if _, state := run(t, g, "realtime"); !state.Success() {
		t.Errorf("a real-time process: %v", state)
	}
	// A parent that is not ours is not changed, but named.
	child, err := host.Create(g.Path() + "/c")
	if err != nil {
		t.Fatal(err)
	}
	runtime = 50000
	_, err = child.Set(&specs.LinuxResources{CPU: &specs.LinuxCPU{RealtimeRuntime: &runtime, RealtimePeriod: &period}})
	if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), "/b/cpu.rt_runtime_us is 2000") {
		t.Errorf("got %v", err)
	}
	if err := child.Destroy(); err != nil {
		t.Error(err)
	}
}
