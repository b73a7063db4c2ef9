package ledger

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
)

var (
	legacy  = mustNamed("legacy", 0)
	unified = mustNamed("unified", 0)
)

func mustNamed(name string, systemd int) Layout {
	l, ok := Named(name, systemd)
	if !ok {
		panic(name)
	}
	return l
}

func resources(t *testing.T, text string) *specs.LinuxResources {
	t.Helper()
	var res specs.LinuxResources
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&res); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return &res
}

// lines are the writes as "file=value", the properties as "Name=value", the
// warnings as "warning: …" and the errors as "error: …", in this order.
func lines(properties []Property, writes []Write, warnings []Warning, err error) []string {
	var out []string
	for _, p := range properties {
		out = append(out, p.Name+"="+FormatValue(p.Value))
	}
	for _, w := range writes {
		s := w.File + "=" + w.Value
		if w.Optional {
			s = "optional " + s
		}
		out = append(out, s)
	}
	for _, w := range warnings {
		out = append(out, "warning: "+w.Pointer)
	}
	var all Errors
	if errors.As(err, &all) {
		for _, e := range all {
			out = append(out, "error: "+e.Pointer+": "+e.Message)
		}
	} else if err != nil {
		out = append(out, "untyped error: "+err.Error())
	}
	return out
}

// files is a Layout.Files that has all but these.
func without(missing ...string) func(string, string) bool {
	return func(_, name string) bool { return !slices.Contains(missing, name) }
}

// now is an Options.Present of these files.
func now(pairs ...string) Options {
	return Options{Present: func(_, file string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == file {
				return pairs[i+1], true
			}
		}
		return "", false
	}}
}

type translateCase struct {
	name   string
	layout Layout
	opts   Options
	res    string
	want   []string
}

func runTranslate(t *testing.T, cases []translateCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			writes, warnings, err := Translate(resources(t, c.res), c.layout, c.opts)
			if got := lines(nil, writes, warnings, err); !slices.Equal(got, c.want) {
				t.Errorf("%s\n got %q\nwant %q", c.res, got, c.want)
			}
			for _, w := range writes {
				if !strings.HasPrefix(w.Pointer, "/") || w.Controller == "" {
					t.Errorf("write without origin: %+v", w)
				}
			}
		})
	}
}

func TestMemory(t *testing.T) {
	v1, v2 := legacy, unified
	noSwap1, noSwap2 := v1, v2
	noSwap1.Files = without("memory.memsw.limit_in_bytes", "memory.kmem.limit_in_bytes")
	noSwap2.Files = without("memory.swap.max")
	runTranslate(t, []translateCase{
		{"v1 limit", v1, Options{}, `{"memory":{"limit":1048576}}`, []string{"memory.limit_in_bytes=1048576"}},
		{"v2 limit", v2, Options{}, `{"memory":{"limit":1048576}}`, []string{"memory.max=1048576"}},
		{"zero leaves it", v2, Options{}, `{"memory":{"limit":0,"swap":0,"reservation":0,"kernel":0,"kernelTCP":0}}`, nil},
		{"v1 no limit takes the swap along", v1, now("memory.memsw.limit_in_bytes", "4096"), `{"memory":{"limit":-1}}`,
			[]string{"memory.memsw.limit_in_bytes=-1", "memory.limit_in_bytes=-1"}},
		{"no limit on a new cgroup", v1, Options{}, `{"memory":{"limit":-1}}`, []string{"memory.limit_in_bytes=-1"}},
		{"v1 no limit on a limited cgroup: the sum first", v1, now("memory.memsw.limit_in_bytes", "4096"), `{"memory":{"limit":8192,"swap":-1}}`,
			[]string{"memory.memsw.limit_in_bytes=-1", "memory.limit_in_bytes=8192"}},
		{"v2 no limit takes the swap along", v2, now("memory.max", "5"), `{"memory":{"limit":-1}}`, []string{"memory.max=max", "memory.swap.max=max"}},
		{"v1 swap is the sum", v1, Options{}, `{"memory":{"limit":100,"swap":300}}`,
			[]string{"memory.limit_in_bytes=100", "memory.memsw.limit_in_bytes=300"}},
		{"v2 swap is what is over", v2, Options{}, `{"memory":{"limit":100,"swap":300}}`, []string{"memory.max=100", "memory.swap.max=200"}},
		{"v2 sum equal to limit is no swap", v2, Options{}, `{"memory":{"limit":100,"swap":100}}`, []string{"memory.max=100", "memory.swap.max=0"}},
		{"v2 swap without limit", v2, Options{}, `{"memory":{"limit":100,"swap":-1}}`, []string{"memory.max=100", "memory.swap.max=max"}},
		{"v2 sum below limit", v2, Options{}, `{"memory":{"limit":100,"swap":50}}`,
			[]string{"error: /memory/swap: memory and swap together (50) are less than memory alone (100)"}},
		{"v1 sum below limit", v1, Options{}, `{"memory":{"limit":100,"swap":50}}`,
			[]string{"error: /memory/swap: memory and swap together (50) are less than memory alone (100)"}},
		{"v2 sum needs a limit", v2, Options{}, `{"memory":{"swap":50}}`,
			[]string{"error: /memory/swap: memory and swap together (50) are less than memory alone (no limit)"}},
		{"v2 sum alone on update", v2, now("memory.max", "100"), `{"memory":{"swap":250}}`, []string{"memory.swap.max=150"}},
		{"v2 sum alone, limit unreadable", v2, now(), `{"memory":{"swap":250}}`,
			[]string{"error: /memory/swap: the memory limit, which this sum contains, cannot be read"}},
		{"v1 raising: sum first", v1, now("memory.memsw.limit_in_bytes", "300"), `{"memory":{"limit":400,"swap":500}}`,
			[]string{"memory.memsw.limit_in_bytes=500", "memory.limit_in_bytes=400"}},
		{"v1 lowering: limit first", v1, now("memory.memsw.limit_in_bytes", "900"), `{"memory":{"limit":400,"swap":500}}`,
			[]string{"memory.limit_in_bytes=400", "memory.memsw.limit_in_bytes=500"}},
		{"v1 limit alone above the sum", v1, now("memory.memsw.limit_in_bytes", "300"), `{"memory":{"limit":400}}`,
			[]string{"error: /memory/limit: 400 is above the present limit of 300 on memory and swap together"}},
		{"v1 from no limit: limit first", v1, now("memory.memsw.limit_in_bytes", "9223372036854771712"), `{"memory":{"limit":400,"swap":500}}`,
			[]string{"memory.limit_in_bytes=400", "memory.memsw.limit_in_bytes=500"}},
		{"v1 without swap accounting", noSwap1, Options{}, `{"memory":{"limit":100,"swap":300}}`,
			[]string{"error: /memory/swap: this kernel does not count swap (no memory.memsw.limit_in_bytes)"}},
		{"v1 without swap accounting, nothing to limit", noSwap1, Options{}, `{"memory":{"limit":100,"swap":-1}}`,
			[]string{"memory.limit_in_bytes=100", "warning: /memory/swap"}},
		{"v2 without swap, none wanted", noSwap2, Options{}, `{"memory":{"limit":100,"swap":100}}`, []string{"memory.max=100", "warning: /memory/swap"}},
		{"v2 without swap, no limit implied", noSwap2, now(), `{"memory":{"limit":-1}}`, []string{"memory.max=max"}},
		{"reservation", v1, Options{}, `{"memory":{"reservation":64}}`, []string{"memory.soft_limit_in_bytes=64"}},
		{"v2 reservation", v2, Options{}, `{"memory":{"reservation":64}}`, []string{"memory.low=64"}},
		{"v2 reservation without end", v2, Options{}, `{"memory":{"reservation":-1}}`, []string{"memory.low=max"}},
		{"v1 kernel", v1, Options{}, `{"memory":{"kernel":64,"kernelTCP":128}}`,
			[]string{"optional memory.kmem.limit_in_bytes=64", "memory.kmem.tcp.limit_in_bytes=128", "warning: /memory/kernel"}},
		{"v1 kernel gone", noSwap1, Options{}, `{"memory":{"kernel":64}}`, []string{"warning: /memory/kernel"}},
		{"v2 kernel", v2, Options{}, `{"memory":{"kernel":64}}`, []string{"warning: /memory/kernel"}},
		{"v2 kernelTCP", v2, Options{}, `{"memory":{"kernelTCP":64}}`,
			[]string{"error: /memory/kernelTCP: cgroup v2 has no file for it: TCP buffers are part of memory.max"}},
		{"v2 kernelTCP without limit", v2, Options{}, `{"memory":{"kernelTCP":-1}}`, nil},
		{"v1 switches", v1, Options{}, `{"memory":{"swappiness":60,"disableOOMKiller":true,"useHierarchy":true}}`,
			[]string{"memory.use_hierarchy=1", "memory.swappiness=60", "memory.oom_control=1"}},
		{"v2 switches that are its way", v2, Options{}, `{"memory":{"disableOOMKiller":false,"useHierarchy":true}}`, nil},
		{"v2 switches that are not", v2, Options{}, `{"memory":{"swappiness":0,"disableOOMKiller":true,"useHierarchy":false}}`, []string{
			"error: /memory/useHierarchy: cgroup v2 has no file for it: it is always hierarchical",
			"error: /memory/swappiness: cgroup v2 has no file for it: vm.swappiness holds for all cgroups",
			"error: /memory/disableOOMKiller: cgroup v2 has no file for it: its OOM killer is always on"}},
		{"swappiness of old engines", v1, Options{}, `{"memory":{"swappiness":18446744073709551615}}`, nil},
		{"swappiness range", v1, Options{}, `{"memory":{"swappiness":101}}`, []string{"error: /memory/swappiness: 101 is out of range"}},
		{"no such limit", v1, Options{}, `{"memory":{"limit":-2}}`, []string{"error: /memory/limit: -2 is not a limit"}},
		{"check before update", v2, now("memory.current", "500"), `{"memory":{"limit":400,"checkBeforeUpdate":true}}`,
			[]string{"error: /memory/limit: the cgroup uses 500 bytes now, more than the new limit of 400"}},
		{"check before update passes", v1, now("memory.usage_in_bytes", "300"), `{"memory":{"limit":400,"checkBeforeUpdate":true}}`,
			[]string{"memory.limit_in_bytes=400"}},
		{"no controller", Layout{Unified: []string{"pids"}}, Options{}, `{"memory":{"limit":400}}`,
			[]string{"error: /memory/limit: this host has no memory controller in its cgroups"}},
		{"nothing mounted", Layout{}, Options{}, `{"memory":{"limit":400}}`,
			[]string{"error: /memory/limit: no cgroup file system is mounted, so nothing can be limited"}},
	})
}

func TestCPU(t *testing.T) {
	v1, v2 := legacy, unified
	noBurst := v2
	noBurst.Files = without("cpu.max.burst", "cpu.rt_runtime_us")
	noRealtime := v1
	noRealtime.Files = without("cpu.rt_runtime_us", "cpu.rt_period_us")
	runTranslate(t, []translateCase{
		{"v1 shares", v1, Options{}, `{"cpu":{"shares":512}}`, []string{"cpu.shares=512"}},
		{"v1 shares clamped", v1, Options{}, `{"cpu":{"shares":1}}`, []string{"cpu.shares=2", "warning: /cpu/shares"}},
		{"v2 shares", v2, Options{}, `{"cpu":{"shares":1024}}`, []string{"cpu.weight=100"}},
		{"v2 shares linear", v2, Options{Shares: Linear}, `{"cpu":{"shares":1024}}`, []string{"cpu.weight=39"}},
		{"v2 shares clamped", v2, Options{}, `{"cpu":{"shares":300000}}`, []string{"cpu.weight=10000", "warning: /cpu/shares"}},
		{"zero leaves it", v2, Options{}, `{"cpu":{"shares":0,"quota":0,"period":0}}`, nil},
		{"v2 quota and period", v2, Options{}, `{"cpu":{"quota":50000,"period":200000}}`, []string{"cpu.max=50000 200000"}},
		{"v2 quota keeps the period", v2, now("cpu.max", "max 200000"), `{"cpu":{"quota":50000}}`, []string{"cpu.max=50000"}},
		{"v2 period keeps the quota", v2, now("cpu.max", "50000 100000"), `{"cpu":{"period":200000}}`, []string{"cpu.max=50000 200000"}},
		{"v2 period of a new cgroup", v2, Options{}, `{"cpu":{"period":200000}}`, []string{"cpu.max=max 200000"}},
		{"v2 no quota", v2, Options{}, `{"cpu":{"quota":-1}}`, []string{"cpu.max=max"}},
		{"no quota in other words", v2, Options{}, `{"cpu":{"quota":-1000}}`, []string{"cpu.max=max"}},
		{"v1 no quota in other words", v1, Options{}, `{"cpu":{"quota":-1000}}`, []string{"cpu.cfs_quota_us=-1"}},
		{"v1 quota alone", v1, Options{}, `{"cpu":{"quota":50000}}`, []string{"cpu.cfs_quota_us=50000"}},
		{"v1 new cgroup", v1, Options{}, `{"cpu":{"quota":50000,"period":50000}}`, []string{"cpu.cfs_period_us=50000", "cpu.cfs_quota_us=50000"}},
		{"v1 period grows: first", v1, now("cpu.cfs_quota_us", "50000", "cpu.cfs_period_us", "100000"), `{"cpu":{"quota":100000,"period":200000}}`,
			[]string{"cpu.cfs_period_us=200000", "cpu.cfs_quota_us=100000"}},
		{"v1 period shrinks: last", v1, now("cpu.cfs_quota_us", "50000", "cpu.cfs_period_us", "100000"), `{"cpu":{"quota":25000,"period":50000}}`,
			[]string{"cpu.cfs_quota_us=25000", "cpu.cfs_period_us=50000"}},
		{"burst with a new quota", v2, Options{}, `{"cpu":{"quota":50000,"burst":20000}}`, []string{"cpu.max=50000", "cpu.max.burst=20000"}},
		{"burst lowered with the quota: first", v2, now("cpu.max", "50000 100000", "cpu.max.burst", "40000"), `{"cpu":{"quota":20000,"burst":10000}}`,
			[]string{"cpu.max.burst=10000", "cpu.max=20000"}},
		{"burst alone", v1, now("cpu.cfs_quota_us", "50000"), `{"cpu":{"burst":50000}}`, []string{"cpu.cfs_burst_us=50000"}},
		{"burst above the quota", v1, now("cpu.cfs_quota_us", "50000"), `{"cpu":{"burst":50001}}`,
			[]string{"error: /cpu/burst: 50001 is above the quota of 50000"}},
		{"quota below the burst", v2, now("cpu.max", "50000 100000", "cpu.max.burst", "40000"), `{"cpu":{"quota":20000}}`,
			[]string{"error: /cpu/quota: 20000 is below the present burst of 40000"}},
		{"burst on an old kernel", noBurst, Options{}, `{"cpu":{"burst":5}}`, []string{"error: /cpu/burst: this kernel has no cpu.max.burst"}},
		{"no burst on an old kernel", noBurst, Options{}, `{"cpu":{"burst":0}}`, nil},
		{"quota range", v2, Options{}, `{"cpu":{"quota":999,"period":1000001}}`,
			[]string{"error: /cpu/quota: 999 is out of range", "error: /cpu/period: 1000001 is out of range"}},
		{"v1 realtime", v1, Options{}, `{"cpu":{"realtimeRuntime":10,"realtimePeriod":2000000}}`,
			[]string{"cpu.rt_period_us=2000000", "cpu.rt_runtime_us=10"}},
		{"v1 realtime, shorter period last", v1, now("cpu.rt_period_us", "1000000"), `{"cpu":{"realtimeRuntime":10,"realtimePeriod":20000}}`,
			[]string{"cpu.rt_runtime_us=10", "cpu.rt_period_us=20000"}},
		{"v1 realtime missing", noRealtime, Options{}, `{"cpu":{"realtimeRuntime":10}}`,
			[]string{"error: /cpu/realtimeRuntime: this kernel has no cpu.rt_runtime_us"}},
		{"v2 realtime", v2, Options{}, `{"cpu":{"realtimeRuntime":10,"realtimePeriod":5}}`, []string{
			"error: /cpu/realtimeRuntime: cgroup v2 has no file for it: it does not divide realtime",
			"error: /cpu/realtimePeriod: cgroup v2 has no file for it: it does not divide realtime"}},
		{"idle", v2, Options{}, `{"cpu":{"idle":1}}`, []string{"cpu.idle=1"}},
		{"idle has no shares", v1, Options{}, `{"cpu":{"idle":1,"shares":512}}`, []string{"cpu.idle=1", "warning: /cpu/shares"}},
		{"awake and shares", v2, now("cpu.idle", "1"), `{"cpu":{"idle":0,"shares":1024}}`, []string{"cpu.idle=0", "cpu.weight=100"}},
		{"shares of an idle cgroup", v2, now("cpu.idle", "1"), `{"cpu":{"shares":1024}}`,
			[]string{"error: /cpu/shares: the cgroup is idle, and an idle cgroup has no shares"}},
		{"idle range", v2, Options{}, `{"cpu":{"idle":2}}`, []string{"error: /cpu/idle: 2 is out of range"}},
		{"cpuset", v1, Options{}, `{"cpu":{"cpus":"0,1,2,7","mems":"0"}}`, []string{"cpuset.cpus=0-2,7", "cpuset.mems=0"}},
		{"cpuset wrong", v2, Options{}, `{"cpu":{"cpus":"3-1"}}`, []string{`error: /cpu/cpus: list "3-1": "3-1": the range runs backwards`}},
		{"cpuset not delegated", Layout{Unified: []string{"cpu"}}, Options{}, `{"cpu":{"cpus":"0"}}`,
			[]string{"error: /cpu/cpus: this host has no cpuset controller in its cgroups"}},
	})
}

func TestPidsAndOthers(t *testing.T) {
	v1, v2 := legacy, unified
	hugeHybrid := Layout{Unified: []string{"hugetlb"}, Legacy: []string{"memory", "cpu"}}
	noReserve := v1
	noReserve.Files = without("hugetlb.2MB.rsvd.limit_in_bytes", "hugetlb.1GB.limit_in_bytes")
	runTranslate(t, []translateCase{
		{"pids", v1, Options{}, `{"pids":{"limit":42}}`, []string{"pids.max=42"}},
		{"pids none", v1, Options{}, `{"pids":{"limit":-1}}`, []string{"pids.max=max"}},
		{"pids zero", v2, Options{}, `{"pids":{"limit":0}}`, []string{"pids.max=0"}},
		{"hugetlb", v1, Options{}, `{"hugepageLimits":[{"pageSize":"2MB","limit":4194304}]}`,
			[]string{"hugetlb.2MB.limit_in_bytes=4194304", "optional hugetlb.2MB.rsvd.limit_in_bytes=4194304"}},
		{"hugetlb on v2 of a hybrid host", hugeHybrid, Options{}, `{"hugepageLimits":[{"pageSize":"2048KB","limit":0}],"memory":{"limit":5}}`,
			[]string{"memory.limit_in_bytes=5", "hugetlb.2MB.max=0", "optional hugetlb.2MB.rsvd.max=0"}},
		{"hugetlb without reservations", noReserve, Options{}, `{"hugepageLimits":[{"pageSize":"2MB","limit":1}]}`, []string{"hugetlb.2MB.limit_in_bytes=1"}},
		{"hugetlb size missing", noReserve, Options{}, `{"hugepageLimits":[{"pageSize":"1GB","limit":1}]}`,
			[]string{"error: /hugepageLimits/0/limit: this kernel has no huge pages of 1GB (no hugetlb.1GB.limit_in_bytes)"}},
		{"hugetlb size wrong", v1, Options{}, `{"hugepageLimits":[{"pageSize":"../2MB","limit":1},{"pageSize":"3MB","limit":1}]}`, []string{
			`error: /hugepageLimits/0/pageSize: "../2MB" is not a huge page size`, `error: /hugepageLimits/1/pageSize: "3MB" is not a huge page size`}},
		{"network", v1, Options{}, `{"network":{"classID":1048577,"priorities":[{"name":"eth0","priority":500},{"name":"lo","priority":0}]}}`,
			[]string{"net_cls.classid=1048577", "net_prio.ifpriomap=eth0 500", "net_prio.ifpriomap=lo 0"}},
		{"network on v2", v2, Options{}, `{"network":{"classID":1,"priorities":[{"name":"eth0","priority":500}]}}`, []string{
			"error: /network/classID: cgroup v2 has no file for it: packets are matched by cgroup path there",
			"error: /network/priorities/0: cgroup v2 has no file for it: packets are matched by cgroup path there"}},
		{"network name", v1, Options{}, `{"network":{"priorities":[{"name":"a b","priority":1}]}}`,
			[]string{`error: /network/priorities/0/name: "a b" is not the name of an interface`}},
		{"network not mounted", Layout{Legacy: []string{"memory"}}, Options{}, `{"network":{"classID":1}}`,
			[]string{"error: /network/classID: this host has no net_cls controller in its cgroups"}},
		{"rdma", v2, Options{}, `{"rdma":{"mlx5_1":{"hcaHandles":3,"hcaObjects":10000},"mlx4_0":{"hcaObjects":1000}}}`,
			[]string{"rdma.max=mlx4_0 hca_object=1000", "rdma.max=mlx5_1 hca_handle=3 hca_object=10000"}},
		{"rdma empty", v1, Options{}, `{"rdma":{"a/b":{}}}`, []string{"error: /rdma/a~1b: neither hcaHandles nor hcaObjects is set"}},
	})
}

func TestBlockIO(t *testing.T) {
	v1, v2 := legacy, unified
	bfq1, bfq2, none2 := v1, v2, v2
	bfq1.Files = without("blkio.weight", "blkio.weight_device", "blkio.leaf_weight")
	bfq2.Files = without("io.weight")
	none2.Files = without("io.weight", "io.bfq.weight")
	both2 := v2
	both2.Files = without()
	runTranslate(t, []translateCase{
		{"v1 weight", v1, Options{}, `{"blockIO":{"weight":500,"leafWeight":300}}`, []string{"blkio.bfq.weight=500", "blkio.leaf_weight=300"}},
		{"v1 weight of BFQ", bfq1, Options{}, `{"blockIO":{"weight":500}}`, []string{"blkio.bfq.weight=500"}},
		{"v1 leaf weight gone", bfq1, Options{}, `{"blockIO":{"leafWeight":500}}`, []string{"error: /blockIO/leafWeight: this kernel has no blkio.leaf_weight"}},
		{"v2 weight", v2, Options{}, `{"blockIO":{"weight":1000}}`, []string{"io.weight=default 10000", "optional io.bfq.weight=default 1000"}},
		{"v2 both schedulers", both2, Options{}, `{"blockIO":{"weight":10}}`, []string{"io.weight=default 1", "io.bfq.weight=default 10"}},
		{"v2 weight of BFQ only", bfq2, Options{}, `{"blockIO":{"weight":10}}`, []string{"io.bfq.weight=default 10"}},
		{"v2 without weights", none2, Options{}, `{"blockIO":{"weight":10}}`,
			[]string{"error: /blockIO/weight: this kernel has no io.weight and no io.bfq.weight"}},
		{"clamped below", both2, Options{}, `{"blockIO":{"weight":1}}`, []string{"io.weight=default 1", "io.bfq.weight=default 10", "warning: /blockIO/weight"}},
		{"clamped above", both2, Options{}, `{"blockIO":{"weight":65535}}`, []string{"io.weight=default 10000", "io.bfq.weight=default 1000", "warning: /blockIO/weight"}},
		{"zero leaves it", v2, Options{}, `{"blockIO":{"weight":0,"leafWeight":0}}`, nil},
		{"v2 leaf weight", v2, Options{}, `{"blockIO":{"leafWeight":10}}`,
			[]string{"error: /blockIO/leafWeight: cgroup v2 has no file for it: no process competes with a child cgroup there"}},
		{"v1 device weights", v1, Options{}, `{"blockIO":{"weightDevice":[{"major":8,"minor":0,"weight":500,"leafWeight":300},{"major":8,"minor":16,"weight":10}]}}`,
			[]string{"blkio.bfq.weight_device=8:0 500", "blkio.leaf_weight_device=8:0 300", "blkio.bfq.weight_device=8:16 10"}},
		{"v2 device weights", both2, Options{}, `{"blockIO":{"weightDevice":[{"major":8,"minor":0,"weight":1000}]}}`,
			[]string{"io.weight=8:0 10000", "io.bfq.weight=8:0 1000"}},
		{"device weight empty", v1, Options{}, `{"blockIO":{"weightDevice":[{"major":8,"minor":0}]}}`,
			[]string{"error: /blockIO/weightDevice/0: neither weight nor leafWeight is set"}},
		{"v1 throttles", v1, Options{}, `{"blockIO":{"throttleReadBpsDevice":[{"major":8,"minor":0,"rate":600}],"throttleWriteBpsDevice":[{"major":8,"minor":0,"rate":700}],
			"throttleReadIOPSDevice":[{"major":8,"minor":0,"rate":60}],"throttleWriteIOPSDevice":[{"major":8,"minor":16,"rate":0}]}}`,
			[]string{"blkio.throttle.read_bps_device=8:0 600", "blkio.throttle.write_bps_device=8:0 700",
				"blkio.throttle.read_iops_device=8:0 60", "blkio.throttle.write_iops_device=8:16 0"}},
		{"v2 throttles", v2, Options{}, `{"blockIO":{"throttleReadBpsDevice":[{"major":8,"minor":0,"rate":600}],"throttleWriteBpsDevice":[{"major":8,"minor":0,"rate":700}],
			"throttleReadIOPSDevice":[{"major":8,"minor":0,"rate":60}],"throttleWriteIOPSDevice":[{"major":8,"minor":16,"rate":0}]}}`,
			[]string{"io.max=8:0 rbps=600", "io.max=8:0 wbps=700", "io.max=8:0 riops=60", "io.max=8:16 wiops=max"}},
		{"no such device", v2, Options{}, `{"blockIO":{"throttleReadBpsDevice":[{"major":-1,"minor":0,"rate":600}]}}`,
			[]string{"error: /blockIO/throttleReadBpsDevice/0: there is no device -1:0"}},
	})
}

func TestUnified(t *testing.T) {
	v1, v2 := legacy, unified
	hybrid := Layout{Unified: []string{"hugetlb"}, Legacy: []string{"memory"}}
	runTranslate(t, []translateCase{
		{"any file, sorted", v2, Options{}, `{"unified":{"memory.high":"1G","foo":"","io.max":"259:0 rbps=2097152 wiops=120\n253:0 rbps=2097152 wiops=120"}}`,
			[]string{"error: /unified/foo: the key is not the name of a control file"}},
		{"line by line", v2, Options{}, `{"unified":{"memory.high":"1G","io.max":"259:0 rbps=2097152 wiops=120\n253:0 rbps=2097152 wiops=120\n"}}`,
			[]string{"io.max=259:0 rbps=2097152 wiops=120", "io.max=253:0 rbps=2097152 wiops=120", "memory.high=1G"}},
		{"unknown file of a known controller", v2, Options{}, `{"unified":{"memory.new.thing":"x"}}`, []string{"memory.new.thing=x"}},
		{"unknown controller", v2, Options{}, `{"unified":{"gpu.max":"1"}}`, []string{`error: /unified/gpu.max: there is no controller "gpu" on this host's cgroup v2`}},
		{"slashes", v2, Options{}, `{"unified":{"../memory.max":"1"}}`, []string{"error: /unified/..~1memory.max: the key is not the name of a file in the cgroup"}},
		{"dots", v2, Options{}, `{"unified":{"..":"1",".x":"1","memory.":"1"}}`, []string{
			"error: /unified/..: the key is not the name of a control file",
			"error: /unified/.x: the key is not the name of a control file",
			"error: /unified/memory.: the key is not the name of a control file"}},
		{"core files", v2, Options{}, `{"unified":{"cgroup.max.depth":"3","cgroup.max.descendants":"10","cgroup.pressure":"0"}}`,
			[]string{"cgroup.max.depth=3", "cgroup.max.descendants=10", "cgroup.pressure=0"}},
		{"core files that are ours", v2, Options{}, `{"unified":{"cgroup.procs":"1","cgroup.kill":"1","cgroup.freeze":"1","cgroup.type":"threaded","cgroup.subtree_control":"+cpu"}}`, []string{
			"error: /unified/cgroup.freeze: a container is frozen by pausing it",
			"error: /unified/cgroup.kill: cgroup.kill is not for a config to write",
			"error: /unified/cgroup.procs: cgroup.procs is not for a config to write",
			"error: /unified/cgroup.subtree_control: controllers are enabled where a limit needs them",
			"error: /unified/cgroup.type: cgroup.type is not for a config to write"}},
		{"core files on a hybrid host", mustNamed("hybrid", 0), Options{}, `{"unified":{"cgroup.max.depth":"3"}}`, []string{"cgroup.max.depth=3"}},
		{"pure v1", v1, Options{}, `{"unified":{"memory.max":"1","cgroup.max.depth":"1","x.y":"1"}}`, []string{
			"error: /unified/cgroup.max.depth: this host has no cgroup.max.depth",
			"error: /unified/memory.max: the memory controller is on cgroup v1 on this host, and unified is for v2",
			"error: /unified/x.y: this host has no controllers on cgroup v2"}},
		{"hybrid by controller", hybrid, Options{}, `{"unified":{"hugetlb.2MB.max":"0","memory.max":"1"}}`,
			[]string{"error: /unified/memory.max: the memory controller is on cgroup v1 on this host, and unified is for v2"}},
		{"hybrid", hybrid, Options{}, `{"unified":{"hugetlb.2MB.max":"0"}}`, []string{"hugetlb.2MB.max=0"}},
		{"wins over the field", v2, Options{}, `{"memory":{"limit":5},"unified":{"memory.max":"6"}}`, []string{"memory.max=6", "warning: /memory/limit"}},
		{"devices stand beside", v2, Options{}, `{"blockIO":{"throttleReadBpsDevice":[{"major":8,"minor":0,"rate":600}]},"unified":{"io.max":"8:1 rbps=5"}}`,
			[]string{"io.max=8:0 rbps=600", "io.max=8:1 rbps=5"}},
		{"idle has no weight", v2, Options{}, `{"cpu":{"shares":1024},"unified":{"cpu.idle":"1","cpu.weight":"50"}}`,
			[]string{"cpu.idle=1", "warning: /cpu/shares", "warning: /unified/cpu.weight"}},
		{"others by unified", v2, Options{}, `{"unified":{"misc.max":"sev 4","dmem.max":"drm/0/vram0 1G","rdma.max":"mlx5 hca_handle=2"}}`,
			[]string{"dmem.max=drm/0/vram0 1G", "misc.max=sev 4", "rdma.max=mlx5 hca_handle=2"}},
	})
}

func TestAllErrorsAtOnce(t *testing.T) {
	_, _, err := Translate(resources(t, `{"memory":{"swappiness":1},"cpu":{"quota":1},"pids":{"limit":-5},"unified":{"a/b":""}}`), unified, Options{})
	var all Errors
	if !errors.As(err, &all) || len(all) != 4 {
		t.Fatalf("got %v", err)
	}
	var one *FieldError
	if !errors.As(err, &one) || one.Pointer != "/memory/swappiness" {
		t.Errorf("errors.As gives %v", one)
	}
	for _, p := range []string{"/memory/swappiness: ", "/cpu/quota: ", "/pids/limit: ", "/unified/a~1b: "} {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q does not name %s", err, p)
		}
	}
}

func TestTook(t *testing.T) {
	for _, c := range []struct {
		file, wrote, got string
		same             bool
	}{
		{"memory.max", "1048576", "1048576\n", true},
		{"memory.max", "1048577", "1048576", false},
		{"memory.max", "1M", "1048576", true},
		{"memory.limit_in_bytes", "-1", "9223372036854771712", true},
		{"memory.swap.max", "max", "max", true},
		{"cpu.max", "50000", "50000 100000", true},
		{"cpu.max", "50000", "500000 100000", false},
		{"cpu.max", "50000 100000", "50000 100000", true},
		{"cpu.shares", "1", "2", false},
		{"cpuset.cpus", "0-3", "0-3", true},
		{"cpuset.cpus", "0-3", "0-1", false},
		{"hugetlb.2MB.max", "4194305", "4194304", false},
		{"pids.max", "max", "max", true},
		{"memory.oom_control", "1", "oom_kill_disable 1\nunder_oom 0\noom_kill 0\n", true},
		{"memory.oom_control", "1", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", false},
		{"io.weight", "200", "default 200\n8:0 100\n", true},
		{"io.weight", "200", "default 100\n8:0 200\n", false},
	} {
		same, why := Write{File: c.file, Value: c.wrote}.Took(c.got)
		if same != c.same || (why == "") != same {
			t.Errorf("%s: wrote %q, got %q: %v %q", c.file, c.wrote, c.got, same, why)
		}
	}
}
