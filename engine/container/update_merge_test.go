package container

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/internal/ptr"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

func TestMergeMemory(t *testing.T) {
	for _, test := range []struct {
		name                         string
		limit, swap                  *int64 // had
		newLimit, newSwap            *int64
		v1Limit, v1Swap, v2Limit, v2 *int64
	}{
		{name: "first", newLimit: ptr.To(int64(10)), v1Limit: ptr.To(int64(10)), v2Limit: ptr.To(int64(10))},
		{name: "zero says nothing", limit: ptr.To(int64(10)), newLimit: ptr.To(int64(0)), v1Limit: ptr.To(int64(10)), v2Limit: ptr.To(int64(10))},
		{name: "both", limit: ptr.To(int64(10)), swap: ptr.To(int64(20)), newLimit: ptr.To(int64(30)), newSwap: ptr.To(int64(40)),
			v1Limit: ptr.To(int64(30)), v1Swap: ptr.To(int64(40)), v2Limit: ptr.To(int64(30)), v2: ptr.To(int64(40))},
		{name: "the sum, or swap, stays", limit: ptr.To(int64(10)), swap: ptr.To(int64(20)), newLimit: ptr.To(int64(15)),
			v1Limit: ptr.To(int64(15)), v1Swap: ptr.To(int64(20)), v2Limit: ptr.To(int64(15)), v2: ptr.To(int64(25))},
		{name: "no limit", limit: ptr.To(int64(10)), swap: ptr.To(int64(20)), newLimit: ptr.To(int64(-1)),
			v1Limit: ptr.To(int64(-1)), v1Swap: ptr.To(int64(-1)), v2Limit: ptr.To(int64(-1)), v2: ptr.To(int64(-1))},
		{name: "unlimited swap stays so", limit: ptr.To(int64(10)), swap: ptr.To(int64(-1)), newLimit: ptr.To(int64(5)),
			v1Limit: ptr.To(int64(5)), v1Swap: ptr.To(int64(-1)), v2Limit: ptr.To(int64(5)), v2: ptr.To(int64(-1))},
		{name: "swap alone", limit: ptr.To(int64(10)), newSwap: ptr.To(int64(12)), v1Limit: ptr.To(int64(10)), v1Swap: ptr.To(int64(12)), v2Limit: ptr.To(int64(10)), v2: ptr.To(int64(12))},
	} {
		t.Run(test.name, func(t *testing.T) {
			had := &specs.LinuxMemory{Limit: test.limit, Swap: test.swap}
			update := &specs.LinuxMemory{Limit: test.newLimit, Swap: test.newSwap}
			for _, v2 := range []bool{false, true} {
				limit, swap := test.v1Limit, test.v1Swap
				if v2 {
					limit, swap = test.v2Limit, test.v2
				}
				got := mergeResources(&specs.LinuxResources{Memory: had}, &specs.LinuxResources{Memory: update}, v2)
				if !reflect.DeepEqual(got.Memory, &specs.LinuxMemory{Limit: limit, Swap: swap}) {
					t.Errorf("v2 %t: limit %v, swap %v", v2, deref(got.Memory.Limit), deref(got.Memory.Swap))
				}
				layout := ledger.Layout{Legacy: []string{"memory"}}
				if v2 {
					layout = ledger.Layout{Unified: []string{"memory"}}
				}
				if _, _, err := ledger.Translate(got, layout, ledger.Options{}); err != nil {
					t.Errorf("v2 %t: a container could not be made with it: %v", v2, err)
				}
			}
			if had.Limit != test.limit || had.Swap != test.swap {
				t.Error("what the container had is changed in place")
			}
		})
	}
}

func deref(v *int64) any {
	if v == nil {
		return nil
	}
	return *v
}

func TestMergeResources(t *testing.T) {
	device := specs.LinuxBlockIODevice{Major: 8, Minor: 1}
	other := specs.LinuxBlockIODevice{Major: 8, Minor: 2}
	throttle := func(d specs.LinuxBlockIODevice, rate uint64) specs.LinuxThrottleDevice {
		return specs.LinuxThrottleDevice{LinuxBlockIODevice: d, Rate: rate}
	}
	had := &specs.LinuxResources{
		Devices:        []specs.LinuxDeviceCgroup{{Allow: false}},
		CPU:            &specs.LinuxCPU{Shares: ptr.To(uint64(100)), Quota: ptr.To(int64(5000)), Cpus: "0"},
		Pids:           &specs.LinuxPids{Limit: ptr.To(int64(5))},
		BlockIO:        &specs.LinuxBlockIO{Weight: ptr.To(uint16(100)), ThrottleReadBpsDevice: []specs.LinuxThrottleDevice{throttle(device, 1)}},
		HugepageLimits: []specs.LinuxHugepageLimit{{Pagesize: "2MB", Limit: 1}, {Pagesize: "1GB", Limit: 2}},
		Unified:        map[string]string{"memory.high": "1"},
		Rdma:           map[string]specs.LinuxRdma{"mlx": {HcaHandles: ptr.To(uint32(1)), HcaObjects: ptr.To(uint32(2))}},
		Network:        &specs.LinuxNetwork{ClassID: ptr.To(uint32(1)), Priorities: []specs.LinuxInterfacePriority{{Name: "eth0", Priority: 1}}},
	}
	got := mergeResources(had, &specs.LinuxResources{
		CPU:            &specs.LinuxCPU{Shares: ptr.To(uint64(0)), Period: ptr.To(uint64(10000)), Idle: ptr.To(int64(0)), Mems: "0"},
		BlockIO:        &specs.LinuxBlockIO{ThrottleReadBpsDevice: []specs.LinuxThrottleDevice{throttle(device, 0), throttle(other, 3)}},
		HugepageLimits: []specs.LinuxHugepageLimit{{Pagesize: "1GB", Limit: 9}},
		Unified:        map[string]string{"memory.high": "2", "cpu.weight": "3"},
		Rdma:           map[string]specs.LinuxRdma{"mlx": {HcaObjects: ptr.To(uint32(7))}},
		Network:        &specs.LinuxNetwork{Priorities: []specs.LinuxInterfacePriority{{Name: "eth0", Priority: 2}, {Name: "eth1", Priority: 3}}},
	}, false)
	want := &specs.LinuxResources{
		Devices:        had.Devices,
		CPU:            &specs.LinuxCPU{Shares: ptr.To(uint64(100)), Quota: ptr.To(int64(5000)), Period: ptr.To(uint64(10000)), Idle: ptr.To(int64(0)), Cpus: "0", Mems: "0"},
		Pids:           &specs.LinuxPids{Limit: ptr.To(int64(5))},
		BlockIO:        &specs.LinuxBlockIO{Weight: ptr.To(uint16(100)), ThrottleReadBpsDevice: []specs.LinuxThrottleDevice{throttle(device, 0), throttle(other, 3)}},
		HugepageLimits: []specs.LinuxHugepageLimit{{Pagesize: "2MB", Limit: 1}, {Pagesize: "1GB", Limit: 9}},
		Unified:        map[string]string{"memory.high": "2", "cpu.weight": "3"},
		Rdma:           map[string]specs.LinuxRdma{"mlx": {HcaHandles: ptr.To(uint32(1)), HcaObjects: ptr.To(uint32(7))}},
		Network:        &specs.LinuxNetwork{ClassID: ptr.To(uint32(1)), Priorities: []specs.LinuxInterfacePriority{{Name: "eth0", Priority: 2}, {Name: "eth1", Priority: 3}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if had.BlockIO.ThrottleReadBpsDevice[0].Rate != 1 || had.HugepageLimits[1].Limit != 2 || had.Unified["memory.high"] != "1" || len(had.Unified) != 1 {
		t.Error("what the container had is changed in place")
	}
	if got := mergeResources(nil, &specs.LinuxResources{Unified: map[string]string{"a.b": "1"}, Rdma: map[string]specs.LinuxRdma{"x": {}}}, true); got.Unified["a.b"] != "1" {
		t.Errorf("over nothing: %+v", got)
	}
}

func TestChangeRdt(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "schemata"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := &Container{Record: Record{ID: "demo"}}
	linux := &specs.Linux{IntelRdt: &specs.LinuxIntelRdt{ClosID: "class", L3CacheSchema: "L3:0=ff"}}
	if _, err := writeRdt(dir, linux, &Changes{MemBwSchema: "MB:0=50"}); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "schemata")); string(text) != "MB:0=50\n" {
		t.Errorf("schemata %q", text)
	}
	if linux.IntelRdt.MemBwSchema != "MB:0=50" || linux.IntelRdt.L3CacheSchema != "L3:0=ff" {
		t.Errorf("remembered %+v", linux.IntelRdt)
	}
	if _, err := c.changeRdt(&specs.Linux{}, &Changes{L3CacheSchema: "L3:0=1"}); err == nil {
		t.Error("a container without a resctrl group takes a schema")
	}
	if _, err := c.changeRdt(&specs.Linux{}, &Changes{}); err != nil {
		t.Errorf("nothing to change: %v", err)
	}
}
