package view

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/berth-runtime/berth/cgroup"
	wire "github.com/berth-runtime/berth/internal/json"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

func TestParseNetDev(t *testing.T) {
	const text = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    1000      10    0    0    0     0          0         0     1000      10    0    0    0     0       0          0
  eth0:  123456     100    1    2    3     4          5         6   654321     200    7    8    9    10      11         12
eth0:1:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
 short: 1 2 3
`
	want := []InterfaceStats{
		{"eth0", 123456, 100, 1, 2, 654321, 200, 7, 8},
		{"eth0:1", 1, 2, 3, 4, 9, 10, 11, 12},
	}
	if got := parseNetDev([]byte(text)); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := parseNetDev(nil); got != nil {
		t.Errorf("of nothing: %+v", got)
	}
}

func FuzzParseNetDev(f *testing.F) {
	f.Add([]byte("eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, i := range parseNetDev(text) {
			if i.Name == "lo" {
				t.Error("lo is there")
			}
		}
	})
}

func TestOwnNetwork(t *testing.T) {
	for _, test := range []struct {
		linux *specs.Linux
		own   bool
	}{
		{nil, false},
		{&specs.Linux{Namespaces: []specs.LinuxNamespace{{Type: specs.PIDNamespace}}}, false},
		{&specs.Linux{Namespaces: []specs.LinuxNamespace{{Type: specs.NetworkNamespace}}}, true},
		{&specs.Linux{Namespaces: []specs.LinuxNamespace{{Type: specs.NetworkNamespace, Path: "/run/netns/a"}}}, true},
	} {
		if got := ownNetwork(&specs.Spec{Linux: test.linux}); got != test.own {
			t.Errorf("%+v: %t", test.linux, got)
		}
	}
}

// shown is the JSON of statistics, decoded by another library.
func shown(t *testing.T, s *Stats) map[string]any {
	t.Helper()
	w := wire.NewWriter(nil, "")
	s.JSON(w)
	var m map[string]any
	if err := json.Unmarshal(w.Bytes(), &m); err != nil {
		t.Fatalf("%v\n%s", err, w.Bytes())
	}
	return m
}

func jsonOf(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// The parts of the shape that clients rely on are there also where nothing is known.
func TestStatsShapeOfNothing(t *testing.T) {
	want := jsonOf(t, `{
		"cpu": {"usage": {"kernel": 0, "user": 0}, "throttling": {}},
		"cpuset": {"cpu_exclusive": 0, "mem_hardwall": 0, "mem_exclusive": 0, "memory_migrate": 0, "memory_spread_page": 0, "memory_spread_slab": 0,
			"memory_pressure": 0, "sched_load_balance": 0, "sched_relax_domain_level": 0},
		"memory": {"cache": 0, "usage": {"limit": 0, "failcnt": 0}, "swap": {"limit": 0, "failcnt": 0}, "kernel": {"limit": 0, "failcnt": 0}, "kernelTCP": {"limit": 0, "failcnt": 0}},
		"pids": {}, "blkio": {}, "hugetlb": {}, "intel_rdt": {}, "network_interfaces": []}`)
	if got := shown(t, &Stats{Stats: &cgroup.Stats{}}); !reflect.DeepEqual(any(got), want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestStatsShape(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	line := &cgroup.PressureLine{Avg10: 0.25, Avg60: 1, Avg300: 12.5, Total: 99}
	s := &Stats{
		Stats: &cgroup.Stats{
			CPU: &cgroup.CPUStats{Usage: n(30), User: n(20), System: n(10), PerCPU: []uint64{30, 0}, Periods: n(3), ThrottledPeriods: n(2), Throttled: n(1),
				Pressure: &cgroup.Pressure{Some: line}},
			Cpuset: &cgroup.CpusetStats{CPUs: "0-1,3", Mems: "0"},
			Memory: &cgroup.MemoryStats{
				Counter: cgroup.Counter{Usage: n(100), Peak: n(200), Limit: n(300), Failures: n(4)},
				Swap:    &cgroup.Counter{Usage: n(50), Limit: n(60)},
				Stat:    map[string]uint64{"file": 7, "anon": 8},
			},
			IO:      &cgroup.IOStats{Devices: []cgroup.DeviceIO{{Major: 8, Minor: 16, ReadBytes: n(1), WriteBytes: n(2), DiscardBytes: n(0), Reads: n(3), Writes: n(4)}}},
			Pids:    &cgroup.PidsStats{Counter: cgroup.Counter{Usage: n(5), Limit: n(9)}},
			Hugetlb: map[string]cgroup.HugetlbStats{"2MB": {Counter: cgroup.Counter{Usage: n(1), Peak: n(2), Failures: n(3)}}},
		},
		CpusetFlags: map[string]int64{"cpu_exclusive": 1, "sched_relax_domain_level": -1},
		Interfaces:  []InterfaceStats{{"eth0", 1, 2, 3, 4, 5, 6, 7, 8}},
	}
	want := jsonOf(t, `{
		"cpu": {"usage": {"total": 30, "percpu": [30, 0], "kernel": 10, "user": 20}, "throttling": {"periods": 3, "throttledPeriods": 2, "throttledTime": 1},
			"psi": {"some": {"avg10": 0.25, "avg60": 1, "avg300": 12.5, "total": 99}}},
		"cpuset": {"cpus": [0, 1, 3], "mems": [0], "cpu_exclusive": 1, "mem_hardwall": 0, "mem_exclusive": 0, "memory_migrate": 0, "memory_spread_page": 0,
			"memory_spread_slab": 0, "memory_pressure": 0, "sched_load_balance": 0, "sched_relax_domain_level": -1},
		"memory": {"cache": 7, "usage": {"limit": 300, "usage": 100, "max": 200, "failcnt": 4}, "swap": {"limit": 360, "usage": 150, "failcnt": 0},
			"kernel": {"limit": 0, "failcnt": 0}, "kernelTCP": {"limit": 0, "failcnt": 0}, "raw": {"file": 7, "anon": 8}},
		"pids": {"current": 5, "limit": 9},
		"blkio": {"ioServiceBytesRecursive": [{"major": 8, "minor": 16, "op": "Read", "value": 1}, {"major": 8, "minor": 16, "op": "Write", "value": 2}, {"major": 8, "minor": 16, "op": "Discard", "value": 0}],
			"ioServicedRecursive": [{"major": 8, "minor": 16, "op": "Read", "value": 3}, {"major": 8, "minor": 16, "op": "Write", "value": 4}]},
		"hugetlb": {"2MB": {"usage": 1, "max": 2, "failcnt": 3}}, "intel_rdt": {},
		"network_interfaces": [{"Name": "eth0", "RxBytes": 1, "RxPackets": 2, "RxErrors": 3, "RxDropped": 4, "TxBytes": 5, "TxPackets": 6, "TxErrors": 7, "TxDropped": 8}]}`)
	if got := shown(t, s); !reflect.DeepEqual(any(got), want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}

	// No limit is no limit of the sum either, and none of the pids.
	s.Memory.Swap.Limit, s.Pids.Limit = n(cgroup.NoLimit), n(cgroup.NoLimit)
	got := shown(t, s)
	if limit := got["memory"].(map[string]any)["swap"].(map[string]any)["limit"].(float64); limit < 1<<63 {
		t.Errorf("swap without limit: %v", limit)
	}
	if pids := got["pids"].(map[string]any); len(pids) != 1 {
		t.Errorf("pids without limit: %v", pids)
	}
}

// Version 1 has a sum for each device, which its clients look for.
func TestStatsShapeOfBlkioV1(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	s := &Stats{Stats: &cgroup.Stats{IO: &cgroup.IOStats{Devices: []cgroup.DeviceIO{{Major: 8, ReadBytes: n(1), WriteBytes: n(2),
		Extra: map[string]uint64{"sync_bytes": 3, "async_bytes": 0, "io_queued.Read": 7}}}}}}
	want := jsonOf(t, `{"ioServiceBytesRecursive": [{"major": 8, "minor": 0, "op": "Read", "value": 1}, {"major": 8, "minor": 0, "op": "Write", "value": 2},
		{"major": 8, "minor": 0, "op": "Sync", "value": 3}, {"major": 8, "minor": 0, "op": "Async", "value": 0}, {"major": 8, "minor": 0, "op": "Total", "value": 3}],
		"ioQueueRecursive": [{"major": 8, "minor": 0, "op": "Read", "value": 7}]}`)
	if got := shown(t, s)["blkio"]; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestRdtStats(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"schemata": "    L3:0=ff;1=ff\n    MB:0=100;1=100\n", "info/L3/cbm_mask": "ff\n", "info/L3/min_cbm_bits": "2\n", "info/L3/num_closids": "16\n", "info/L3/shareable_bits": "0\n",
		"info/MB/bandwidth_gran": "10\n", "info/MB/min_bandwidth": "10\n",
		"demo/schemata":                         "L3:0=f;1=f0\nMB:0=50;1=70\n",
		"demo/mon_data/mon_L3_00/llc_occupancy": "123\n", "demo/mon_data/mon_L3_00/mbm_total_bytes": "456\n", "demo/mon_data/mon_L3_00/mbm_local_bytes": "Unavailable\n",
		"demo/mon_data/other/x": "1\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := jsonOf(t, `{"l3_cache_info": {"cbm_mask": "ff", "min_cbm_bits": 2, "num_closids": 16}, "l3_cache_schema_root": "L3:0=ff;1=ff", "l3_cache_schema": "L3:0=f;1=f0",
		"mem_bw_info": {"bandwidth_gran": 10, "min_bandwidth": 10}, "mem_bw_schema_root": "MB:0=100;1=100", "mem_bw_schema": "MB:0=50;1=70",
		"mbm_stats": [{"mbm_total_bytes": 456}], "cmt_stats": [{"llc_occupancy": 123}]}`)
	if got := shown(t, &Stats{Stats: &cgroup.Stats{}, Rdt: readRdt(filepath.Join(root, "demo"))})["intel_rdt"]; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
