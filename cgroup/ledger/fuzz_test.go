package ledger

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// FuzzTranslate gives any resources to any layout: nothing may panic, every
// write must be for one file in the cgroup's own directory, and on a refusal there
// must be no writes.
func FuzzTranslate(f *testing.F) {
	f.Add(`{"memory":{"limit":5,"swap":9},"cpu":{"quota":5000,"burst":3,"cpus":"0-3"}}`, `50000 100000`)
	f.Add(`{"unified":{"io.max":"8:0 rbps=1\n8:1 rbps=2","cpu.max":"max"},"rdma":{"a":{"hcaHandles":1}}}`, `max`)
	f.Add(`{"hugepageLimits":[{"pageSize":"2MB","limit":1}],"blockIO":{"weight":1}}`, ``)
	// The one object has all fields, of which each host refuses some; the others
	// are what a host can take, with each of the numbers that stand in the files now.
	f.Add(`{"memory":{"limit":-1,"reservation":4096,"swap":-1,"kernel":4096,"kernelTCP":4096,"swappiness":60,"disableOOMKiller":true,"useHierarchy":true,"checkBeforeUpdate":true},
		"cpu":{"shares":512,"quota":-1,"period":50000,"burst":0,"realtimeRuntime":5000,"realtimePeriod":1000000,"cpus":"0-3,8","mems":"0","idle":0},"pids":{"limit":-1},
		"blockIO":{"weight":500,"leafWeight":300,"weightDevice":[{"major":8,"minor":0,"weight":300,"leafWeight":20}],"throttleReadBpsDevice":[{"major":8,"minor":0,"rate":600}]},
		"network":{"classID":1048577,"priorities":[{"name":"eth0","priority":5}]},"rdma":{"mlx5_0":{"hcaHandles":3,"hcaObjects":4}}}`, `4096`)
	for _, present := range []string{"", "max", "-1", "max 100000", "50000 100000", "4096"} {
		f.Add(`{"memory":{"limit":8192,"reservation":4096,"swap":16384},"cpu":{"shares":2,"period":200000,"idle":1},"pids":{"limit":0},
			"blockIO":{"weightDevice":[{"major":8,"minor":0,"weight":1000}],"throttleReadBpsDevice":[{"major":8,"minor":0,"rate":0}],"throttleWriteBpsDevice":[{"major":8,"minor":0,"rate":1}],
			"throttleReadIOPSDevice":[{"major":8,"minor":16,"rate":2}],"throttleWriteIOPSDevice":[{"major":8,"minor":16,"rate":3}]}}`, present)
		f.Add(`{"memory":{"limit":-1,"swap":-1},"cpu":{"quota":25000,"burst":25000},"hugepageLimits":[{"pageSize":"2048KB","limit":4096},{"pageSize":"1GB","limit":0}]}`, present)
		f.Add(`{"memory":{"swap":8192},"cpu":{"quota":33333,"period":70000,"realtimeRuntime":500,"realtimePeriod":200000}}`, present)
	}
	f.Add(`{"unified":{"cpu.max":"10000 20000","cpu.weight":"7","cpuset.cpus":"0-3,7","cpuset.mems":"0","memory.high":"5G","memory.low":"4","memory.min":"3","memory.max":"max",
		"memory.swap.max":"0","memory.zswap.max":"1M","memory.zswap.writeback":"0","memory.oom.group":"1","pids.max":"12","cgroup.max.depth":"3"}}`, ``)
	f.Add(`{"unified":{"io.weight":"default 50\n8:0 60","io.max":"8:0 rbps=5 wiops=max","io.latency":"8:0 target=75","rdma.max":"a hca_handle=1","memory.new":"x"},
		"blockIO":{"weight":10},"cpu":{"shares":1024}}`, ``)
	f.Add(`{"unified":{"cpu.idle":"1","cpu.weight":"5","cpu.max":"max 5"},"cpu":{"shares":3,"quota":5000}}`, `100`)
	f.Add(`{"unified":{"cgroup.procs":"1"}}`, ``)
	f.Add(`{"unified":{"../x":"1","gpu.max":"1","memory":"1"}}`, ``)
	f.Fuzz(func(t *testing.T, text, present string) {
		var res specs.LinuxResources
		if json.Unmarshal([]byte(text), &res) != nil {
			return
		}
		opts := Options{Present: func(_, _ string) (string, bool) { return present, true }}
		for _, name := range []string{"legacy", "hybrid", "unified"} {
			layout := mustNamed(name, 257)
			writes, _, err := Translate(&res, layout, opts)
			if err != nil && len(writes) > 0 {
				t.Fatalf("writes beside the error %v", err)
			}
			for _, w := range writes {
				if w.File == "" || strings.ContainsAny(w.File, "/\x00\n") || strings.Contains(w.Value, "\n") || w.V2 != layout.onV2(w.Controller) && w.Controller != "cgroup" {
					t.Fatalf("%+v", w)
				}
			}
			properties, _, _, again := Properties(&res, layout, opts)
			if (again == nil) != (err == nil) {
				t.Fatalf("%s: files say %v, properties say %v", name, err, again)
			}
			seen := map[string]bool{}
			for _, p := range properties {
				if seen[p.Name] || p.Pointer == "" {
					t.Fatalf("%s: %+v is there twice, or of no field", name, p)
				}
				seen[p.Name] = true
			}
		}
	})
}
