package ledger

import (
	"slices"
	"strings"
	"testing"
)

func TestProperties(t *testing.T) {
	v1, v2 := mustNamed("legacy", 252), mustNamed("unified", 257)
	v2at := func(version int) Layout { return mustNamed("unified", version) }
	for _, c := range []translateCase{
		{"v1", v1, Options{}, `{"memory":{"limit":100,"reservation":50,"swap":200},"cpu":{"shares":512,"cpus":"0-1","mems":"0"},"pids":{"limit":0},"blockIO":{"weight":500}}`,
			[]string{"MemoryLimit=100", "CPUShares=512", "AllowedCPUs=0x03 (0-1)", "AllowedMemoryNodes=0x01 (0)", "TasksMax=1", "BlockIOWeight=500",
				"memory.limit_in_bytes=100", "memory.memsw.limit_in_bytes=200", "memory.soft_limit_in_bytes=50", "cpu.shares=512",
				"cpuset.cpus=0-1", "cpuset.mems=0", "pids.max=0", "blkio.bfq.weight=500"}},
		{"v2", v2, Options{}, `{"memory":{"limit":100,"reservation":50,"swap":200},"cpu":{"shares":1024,"quota":50000,"period":100000,"cpus":"8","mems":"0"},"pids":{"limit":-1}}`,
			[]string{"MemoryMax=100", "MemorySwapMax=100", "MemoryLow=50", "CPUWeight=100", "CPUQuotaPerSecUSec=500000", "CPUQuotaPeriodUSec=100000",
				"AllowedCPUs=0x0001 (8)", "AllowedMemoryNodes=0x01 (0)", "TasksMax=infinity", "memory.max=100", "memory.swap.max=100",
				"memory.low=50", "cpu.weight=100", "cpu.max=50000 100000", "cpuset.cpus=8", "cpuset.mems=0", "pids.max=max"}},
		{"no systemd", v2at(0), Options{}, `{"memory":{"limit":100},"cpu":{"quota":50000}}`, []string{"memory.max=100", "cpu.max=50000"}},
		{"cpuset before 244", v2at(243), Options{}, `{"cpu":{"cpus":"0"}}`, []string{"cpuset.cpus=0"}},
		{"period before 242", v2at(241), Options{}, `{"cpu":{"quota":50000,"period":50000}}`,
			[]string{"CPUQuotaPerSecUSec=1000000", "cpu.max=50000 50000", "warning: /cpu/period"}},
		{"v1 period before 242", mustNamed("legacy", 241), Options{}, `{"cpu":{"quota":50000,"period":50000}}`,
			[]string{"CPUQuotaPerSecUSec=1000000", "cpu.cfs_period_us=50000", "cpu.cfs_quota_us=50000", "warning: /cpu/period"}},
		{"v1 quota", v1, Options{}, `{"cpu":{"quota":50000,"period":50000}}`, []string{"CPUQuotaPerSecUSec=1000000", "CPUQuotaPeriodUSec=50000", "cpu.cfs_period_us=50000", "cpu.cfs_quota_us=50000"}},
		{"quota rounded", v2, Options{}, `{"cpu":{"quota":33333}}`, []string{"CPUQuotaPerSecUSec=340000", "cpu.max=34000", "warning: /cpu/quota"}},
		{"quota of the present period", v2, now("cpu.max", "max 50000"), `{"cpu":{"quota":25000}}`, []string{"CPUQuotaPerSecUSec=500000", "cpu.max=25000"}},
		{"period of the present quota", v2, now("cpu.max", "50000 100000"), `{"cpu":{"period":200000}}`,
			[]string{"CPUQuotaPerSecUSec=250000", "CPUQuotaPeriodUSec=200000", "cpu.max=50000 200000"}},
		{"no quota", v2, Options{}, `{"cpu":{"quota":-1}}`, []string{"CPUQuotaPerSecUSec=infinity", "cpu.max=max"}},
		{"burst by file", v2, Options{}, `{"cpu":{"quota":50000,"burst":50000}}`, []string{"CPUQuotaPerSecUSec=500000", "cpu.max=50000", "cpu.max.burst=50000"}},
		{"idle", v2, Options{}, `{"cpu":{"idle":1}}`, []string{"CPUWeight=0", "cpu.idle=1"}},
		{"idle before 252", v2at(251), Options{}, `{"cpu":{"idle":1}}`, []string{"cpu.idle=1"}},
		{"awake", v2, Options{}, `{"cpu":{"idle":0}}`, []string{"cpu.idle=0"}},
		{"io", v2, Options{}, `{"blockIO":{"weight":1000,"weightDevice":[{"major":8,"minor":0,"weight":10}],
			"throttleReadBpsDevice":[{"major":8,"minor":0,"rate":600},{"major":8,"minor":16,"rate":0}],"throttleWriteIOPSDevice":[{"major":8,"minor":0,"rate":7}]}}`,
			[]string{"IOWeight=10000", "IODeviceWeight=/dev/block/8:0 1", "IOReadBandwidthMax=/dev/block/8:0 600, /dev/block/8:16 infinity",
				"IOWriteIOPSMax=/dev/block/8:0 7", "io.weight=default 10000", "optional io.bfq.weight=default 1000", "io.weight=8:0 1",
				"optional io.bfq.weight=8:0 10", "io.max=8:0 rbps=600", "io.max=8:16 rbps=max", "io.max=8:0 wiops=7"}},
		{"hugetlb by file", v2, Options{}, `{"hugepageLimits":[{"pageSize":"2MB","limit":0}]}`,
			[]string{"hugetlb.2MB.max=0", "optional hugetlb.2MB.rsvd.max=0"}},
		{"unified", v2, Options{}, `{"unified":{"cpu.max":"10000 20000","cpu.weight":"7","cpuset.cpus":"0-3,7","cpuset.mems":"0","memory.high":"5","memory.low":"4","memory.min":"3",
			"memory.max":"max","memory.swap.max":"0","memory.swap.high":"9","memory.zswap.max":"1M","memory.zswap.writeback":"0","memory.oom.group":"1","pids.max":"12"}}`,
			[]string{"CPUQuotaPerSecUSec=500000", "CPUQuotaPeriodUSec=20000", "CPUWeight=7", "AllowedCPUs=0x8f (0-3,7)", "AllowedMemoryNodes=0x01 (0)",
				"MemoryHigh=5", "MemoryLow=4", "MemoryMax=infinity", "MemoryMin=3", "OOMPolicy=kill", "MemorySwapMax=0", "MemoryZSwapMax=1048576",
				"MemoryZSwapWriteback=false", "TasksMax=12", "cpu.max=10000 20000", "cpu.weight=7", "cpuset.cpus=0-3,7", "cpuset.mems=0",
				"memory.high=5", "memory.low=4", "memory.max=max", "memory.min=3", "memory.oom.group=1", "memory.swap.high=9", "memory.swap.max=0",
				"memory.zswap.max=1M", "memory.zswap.writeback=0", "pids.max=12"}},
		{"unified io", v2, Options{}, `{"unified":{"io.weight":"default 50\n8:0 60","io.max":"8:0 rbps=5 wiops=max","io.latency":"8:0 target=75"}}`,
			[]string{"IODeviceLatencyTargetUSec=/dev/block/8:0 75", "IOReadBandwidthMax=/dev/block/8:0 5", "IOWriteIOPSMax=/dev/block/8:0 infinity",
				"IOWeight=50", "IODeviceWeight=/dev/block/8:0 60", "io.latency=8:0 target=75", "io.max=8:0 rbps=5 wiops=max",
				"io.weight=default 50", "io.weight=8:0 60"}},
		{"unified not understood", v2, Options{}, `{"unified":{"io.max":"8:0 rbps=5 new=1","memory.high":"50%","cpu.max":"x y z","io.weight":"sda 5"}}`,
			[]string{"cpu.max=x y z", "io.max=8:0 rbps=5 new=1", "io.weight=sda 5", "memory.high=50%"}},
		{"unified period that no kernel takes", v2, Options{}, `{"unified":{"cpu.max":"1000 9000000"}}`, []string{"cpu.max=1000 9000000"}},
		{"unified before its time", v2at(239), Options{}, `{"unified":{"memory.min":"5","memory.zswap.max":"5","memory.oom.group":"1","cpu.idle":"1"}}`,
			[]string{"cpu.idle=1", "memory.min=5", "memory.oom.group=1", "memory.zswap.max=5"}},
		{"OOMPolicy is read-only from the start on", v2, now("memory.oom.group", "0"), `{"unified":{"memory.oom.group":"1"}}`, []string{"memory.oom.group=1"}},
		{"a slice has no OOMPolicy", v2, Options{Slice: true}, `{"unified":{"memory.oom.group":"1"}}`, []string{"memory.oom.group=1"}},
		{"unified wins", v2, Options{}, `{"memory":{"limit":5},"unified":{"memory.max":"6"}}`, []string{"MemoryMax=6", "memory.max=6", "warning: /memory/limit"}},
		{"unified and field with one property", v2, Options{}, `{"cpu":{"shares":1024},"unified":{"cpu.idle":"1"}}`, []string{"CPUWeight=0", "cpu.idle=1", "warning: /cpu/shares"}},
		{"error", v2, Options{}, `{"memory":{"limit":5,"swappiness":5}}`, []string{"error: /memory/swappiness: cgroup v2 has no file for it: vm.swappiness holds for all cgroups"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			properties, rest, warnings, err := Properties(resources(t, c.res), c.layout, c.opts)
			if got := lines(properties, rest, warnings, err); !slices.Equal(got, c.want) {
				t.Errorf("%s\n got %q\nwant %q", c.res, got, c.want)
			}
			seen := map[string]bool{}
			for _, p := range properties {
				if seen[p.Name] {
					t.Errorf("%s is there twice", p.Name)
				}
				seen[p.Name] = true
			}
		})
	}
}

func TestAccounting(t *testing.T) {
	for name, want := range map[string]string{"legacy": "BlockIOAccounting", "hybrid": "BlockIOAccounting", "unified": "IOAccounting"} {
		var names []string
		for _, p := range Accounting(mustNamed(name, 252)) {
			if p.Value != true {
				t.Errorf("%s is %v", p.Name, p.Value)
			}
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); got != "CPUAccounting "+want+" MemoryAccounting TasksAccounting" {
			t.Errorf("%s: %s", name, got)
		}
	}
}
