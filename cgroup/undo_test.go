package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/ptr"
)

func TestInverse(t *testing.T) {
	for _, c := range []struct{ file, value, text, want string }{
		{"memory.max", "4096", "max\n", "max"},
		{"memory.limit_in_bytes", "4096", "9223372036854771712\n", "9223372036854771712"},
		{"cpu.max", "max", "20000 100000\n", "20000 100000"},
		{"memory.oom_control", "1", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", "0"},
		{"cpuset.cpus", "1", "\n", "\n"},
		{"cpuset.cpus", "1", "0-1\n", "0-1"},
		{"cpuset.cpus.partition", "member", "root invalid (Cpu list in cpuset.cpus not exclusive)\n", "root"},
		{"io.max", "8:0 rbps=1", "8:0 rbps=max wbps=5 riops=max wiops=max\n8:16 rbps=7 wbps=max riops=max wiops=max\n", "8:0 rbps=max wbps=5 riops=max wiops=max"},
		{"io.max", "8:32 rbps=1", "8:0 rbps=max wbps=5 riops=max wiops=max\n", "8:32 rbps=max wbps=max riops=max wiops=max"},
		{"io.weight", "200", "default 100\n8:0 50\n", "default 100"},
		{"io.weight", "default 200", "default 100\n", "default 100"},
		{"io.bfq.weight", "8:0 200", "default 100\n", "8:0 default"},
		{"io.latency", "8:0 target=5", "", "8:0 target=0"},
		{"blkio.throttle.read_bps_device", "8:0 1", "8:0 77\n", "8:0 77"},
		{"blkio.throttle.read_bps_device", "8:0 1", "", "8:0 0"},
		{"blkio.bfq.weight_device", "8:0 1", "", "8:0 default"},
		{"net_prio.ifpriomap", "lo 3", "lo 0\neth0 2\n", "lo 0"},
		{"rdma.max", "mlx hca_handle=3", "mlx hca_handle=2 hca_object=max\n", "mlx hca_handle=2 hca_object=max"},
		{"misc.max", "sev 3", "sev max\n", "sev max"},
	} {
		if got, ok := inverse(c.file, c.value, c.text); !ok || got != c.want {
			t.Errorf("%s was %q, %q was written: to be undone by %q, %v, want %q", c.file, c.text, c.value, got, ok, c.want)
		}
	}
	for _, c := range [][3]string{{"misc.max", "sev 3", ""}, {"memory.oom_control", "1", "0"}, {"io.cost.qos", "8:0 enable=1", ""}} {
		if got, ok := inverse(c[0], c[1], c[2]); ok {
			t.Errorf("%s: %q is said to undo what cannot be", c[0], got)
		}
	}
}

// A value that the kernel refuses takes all that was written before it along: every
// file is as it was. What is refused differs, so that each file is once behind it.
func TestRefusedSetIsTakenBack(t *testing.T) {
	host := hostForTest(t)
	for _, controller := range []string{"memory", "cpu", "cpuset", "pids"} {
		need(t, host, controller)
	}
	g := makeGroup(t, host)
	set(t, g, &specs.LinuxResources{
		Memory: &specs.LinuxMemory{Limit: ptr.To(int64(64 << 20)), Swap: ptr.To(int64(128 << 20))},
		CPU:    &specs.LinuxCPU{Shares: ptr.To(uint64(512)), Quota: ptr.To(int64(50000)), Period: ptr.To(uint64(100000)), Cpus: "0", Mems: "0"},
		Pids:   &specs.LinuxPids{Limit: ptr.To(int64(50))},
	})
	before := settings(t, g)
	changes := func() *specs.LinuxResources {
		return &specs.LinuxResources{
			Memory: &specs.LinuxMemory{Limit: ptr.To(int64(256 << 20)), Swap: ptr.To(int64(300 << 20)), Reservation: ptr.To(int64(32 << 20))},
			CPU:    &specs.LinuxCPU{Shares: ptr.To(uint64(2048)), Quota: ptr.To(int64(20000)), Period: ptr.To(uint64(40000))},
			Pids:   &specs.LinuxPids{Limit: ptr.To(int64(7))},
		}
	}
	for name, spoil := range map[string]func(*testing.T, *specs.LinuxResources){
		"a processor that is not there": func(_ *testing.T, r *specs.LinuxResources) { r.CPU.Cpus = "8190" },
		"a node that is not there":      func(_ *testing.T, r *specs.LinuxResources) { r.CPU.Mems = "1023" },
		"a quota below the least":       func(_ *testing.T, r *specs.LinuxResources) { r.CPU.Quota = ptr.To(int64(1)) },
		"a device that is not there": func(t *testing.T, r *specs.LinuxResources) {
			if host.Controller("io") == nil {
				need(t, host, "blkio")
			}
			d := specs.LinuxThrottleDevice{Rate: 1 << 20}
			d.Major, d.Minor = 4095, 77
			r.BlockIO = &specs.LinuxBlockIO{ThrottleReadBpsDevice: []specs.LinuxThrottleDevice{d}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := changes()
			spoil(t, r)
			report, err := g.Set(r)
			if err == nil {
				t.Fatal("it was not refused")
			}
			if len(report.Differences) > 0 {
				t.Errorf("differences of values that do not hold: %v", report.Differences)
			}
			for file, now := range settings(t, g) {
				if now != before[file] {
					t.Errorf("%s was %q, and is %q after a refused change (%v)", file, before[file], now, err)
				}
			}
		})
	}
	set(t, g, changes())
	if now := readFileOf(t, g, "pids", "pids.max"); now != "7" {
		t.Errorf("the same change without the fault: pids.max is %s", now)
	}
}

// Lines of a devices list that stand before one that the parent denies are undone.
func TestRefusedDevicesAreTakenBack(t *testing.T) {
	host := hostForTest(t)
	if h := need(t, host, "devices"); h.Version == 2 {
		t.Skip("version 2 replaces the devices in one step")
	}
	parent := makeGroup(t, host)
	null := specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: ptr.To(int64(1)), Minor: ptr.To(int64(3)), Access: "rwm"}
	zero, full := null, null
	zero.Minor, full.Minor = ptr.To(int64(5)), ptr.To(int64(7))
	none := specs.LinuxDeviceCgroup{Access: "rwm"}
	set(t, parent, &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{none, null, zero}})
	g, err := host.Create(parent.Path()+"/child", Force())
	if err != nil {
		t.Fatal(err)
	}
	defer removeGroup(t, g)
	set(t, g, &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{none, null}})
	before := readFileOf(t, g, "devices", "devices.list")
	limit := int64(9)
	_, err = g.Set(&specs.LinuxResources{Pids: &specs.LinuxPids{Limit: &limit}, Devices: []specs.LinuxDeviceCgroup{none, zero, full}})
	if err == nil || !strings.Contains(err.Error(), "a parent denies it") {
		t.Fatalf("got %v", err)
	}
	if now := readFileOf(t, g, "devices", "devices.list"); now != before {
		t.Errorf("devices.list is %q, and was %q", now, before)
	}
	if now := readFileOf(t, g, "pids", "pids.max"); now != "max" {
		t.Errorf("pids.max is %s", now)
	}
}

// settings are all files of a group that can be written to, with what they hold.
func settings(t *testing.T, g *Group) map[string]string {
	t.Helper()
	all := map[string]string{}
	for i := range g.nodes {
		dir := g.nodes[i].full("")
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || e.IsDir() || info.Mode()&0o200 == 0 || strings.Contains(e.Name(), "pressure") {
				continue
			}
			// Orders to the kernel cannot be read.
			if text, err := os.ReadFile(filepath.Join(dir, e.Name())); err == nil {
				all[filepath.Join(dir, e.Name())] = string(text)
			}
		}
	}
	return all
}
