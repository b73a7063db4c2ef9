package cgroup

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
)

func num(t testing.TB, what string, got *uint64, want uint64) {
	t.Helper()
	switch {
	case got == nil:
		t.Errorf("%s is not known, want %d", what, want)
	case *got != want:
		t.Errorf("%s is %d, want %d", what, *got, want)
	}
}

func unknown(t testing.TB, what string, got *uint64) {
	t.Helper()
	if got != nil {
		t.Errorf("%s is %d, and should not be known", what, *got)
	}
}

func TestStatsOfUnified(t *testing.T) {
	g := fakeGroup(t, map[string]string{
		"proc/self/mountinfo":                          unifiedTable,
		"sys/kernel/mm/hugepages/hugepages-2048kB/":    "",
		"sys/kernel/mm/hugepages/hugepages-1048576kB/": "",
		"sys/fs/cgroup/cgroup.controllers":             "cpuset cpu io memory hugetlb pids rdma misc dmem\n",
		"sys/fs/cgroup/web/cpu.stat":                   "usage_usec 12\nuser_usec 7\nsystem_usec 5\nnice_usec 1\ncore_sched.force_idle_usec 2\nnr_periods 4\nnr_throttled 3\nthrottled_usec 2\nnr_bursts 1\nburst_usec 9\n",
		"sys/fs/cgroup/web/cpu.stat.local":             "throttled_usec 8\n",
		"sys/fs/cgroup/web/cpu.pressure":               "some avg10=1.50 avg60=0.25 avg300=0.00 total=77\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n",
		"sys/fs/cgroup/web/cpuset.cpus.effective":      "0-3\n",
		"sys/fs/cgroup/web/cpuset.mems.effective":      "0\n",
		"sys/fs/cgroup/web/memory.current":             "1000\n",
		"sys/fs/cgroup/web/memory.peak":                "2000\n",
		"sys/fs/cgroup/web/memory.max":                 "max\n",
		"sys/fs/cgroup/web/memory.swap.current":        "5\n",
		"sys/fs/cgroup/web/memory.swap.max":            "100\n",
		"sys/fs/cgroup/web/memory.zswap.current":       "6\n",
		"sys/fs/cgroup/web/memory.stat":                "anon 1\ninactive_file 400\nkernel 22\n",
		"sys/fs/cgroup/web/memory.events":              "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\nsock_throttled 7\n",
		"sys/fs/cgroup/web/memory.events.local":        "low 0\nhigh 0\nmax 1\noom 0\noom_kill 0\noom_group_kill 0\n",
		"sys/fs/cgroup/web/memory.swap.events":         "high 1\nmax 2\nfail 3\n",
		"sys/fs/cgroup/web/memory.numa_stat":           "anon N0=10 N1=20\nfile N0=1 N1=2\n",
		"sys/fs/cgroup/web/io.stat":                    "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6 cost.usage=7\n8:16 \n259:1 rbytes=9 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n",
		"sys/fs/cgroup/web/pids.current":               "3\n",
		"sys/fs/cgroup/web/pids.peak":                  "4\n",
		"sys/fs/cgroup/web/pids.max":                   "10\n",
		"sys/fs/cgroup/web/pids.events":                "max 2\n",
		"sys/fs/cgroup/web/hugetlb.2MB.current":        "0\n",
		"sys/fs/cgroup/web/hugetlb.2MB.max":            "4194304\n",
		"sys/fs/cgroup/web/hugetlb.2MB.events":         "max 1\n",
		"sys/fs/cgroup/web/hugetlb.2MB.rsvd.current":   "2097152\n",
		"sys/fs/cgroup/web/hugetlb.2MB.numa_stat":      "total=0 N0=5\n",
		"sys/fs/cgroup/web/rdma.current":               "mlx5_0 hca_handle=1 hca_object=2\n",
		"sys/fs/cgroup/web/rdma.max":                   "mlx5_0 hca_handle=max hca_object=20\nmlx5_1 hca_handle=max hca_object=max\n",
		"sys/fs/cgroup/web/misc.current":               "sev 1\nsev_es 0\n",
		"sys/fs/cgroup/web/misc.max":                   "sev 4\nsev_es max\n",
		"sys/fs/cgroup/web/misc.events":                "sev.max 9\nsev_es.max 0\n",
		"sys/fs/cgroup/web/dmem.current":               "drm/0000:03:00.0/vram0 1024\n",
		"sys/fs/cgroup/web/dmem.max":                   "drm/0000:03:00.0/vram0 max\n",
		"sys/fs/cgroup/web/cgroup.stat":                "nr_descendants 2\nnr_dying_descendants 1\nnr_subsys_memory 3\n",
		"sys/fs/cgroup/web/cgroup.stat.local":          "frozen_usec 11\n",
	})
	s, err := g.Stats(Everything, NUMA)
	if err != nil {
		t.Fatal(err)
	}
	num(t, "usage", s.CPU.Usage, 12000)
	num(t, "nice", s.CPU.Nice, 1000)
	num(t, "force idle", s.CPU.ForceIdle, 2000)
	num(t, "throttled", s.CPU.Throttled, 2000)
	num(t, "throttled periods", s.CPU.ThrottledPeriods, 3)
	num(t, "throttled here", s.CPU.ThrottledHere, 8000)
	num(t, "burst", s.CPU.Burst, 9000)
	if s.CPU.PerCPU != nil {
		t.Errorf("per CPU %v", s.CPU.PerCPU)
	}
	if p := s.CPU.Pressure; p == nil || p.Some == nil || *p.Some != (PressureLine{Avg10: 1.5, Avg60: 0.25, Total: 77}) || p.Full.Total != 3 {
		t.Errorf("pressure %+v", p)
	}
	if s.CPU.IRQPressure != nil {
		t.Error("a pressure that is not there")
	}
	if *s.Cpuset != (CpusetStats{CPUs: "0-3", Mems: "0"}) {
		t.Errorf("cpuset %+v", s.Cpuset)
	}
	m := s.Memory
	num(t, "memory", m.Usage, 1000)
	num(t, "peak", m.Peak, 2000)
	num(t, "limit", m.Limit, NoLimit)
	num(t, "failures", m.Failures, 3)
	num(t, "swap", m.Swap.Usage, 5)
	num(t, "swap limit", m.Swap.Limit, 100)
	unknown(t, "swap peak", m.Swap.Peak)
	num(t, "zswap", m.Zswap.Usage, 6)
	unknown(t, "zswap limit", m.Zswap.Limit)
	num(t, "kernel", m.Kernel.Usage, 22)
	num(t, "working set", m.WorkingSet(), 600)
	num(t, "oom group kill", m.Events.OOMGroupKill, 6)
	num(t, "sock throttled", m.Events.SockThrottled, 7)
	unknown(t, "local sock throttled", m.EventsLocal.SockThrottled)
	num(t, "swap fail", m.SwapEvents.Fail, 3)
	if m.KernelTCP != nil || m.MemoryAndSwap != nil || m.UnderOOM != nil || m.Pressure != nil {
		t.Errorf("version 1's values: %+v", m)
	}
	if m.NUMA["anon"][1] != 20 || m.NUMA["file"][0] != 1 {
		t.Errorf("NUMA %v", m.NUMA)
	}
	if len(s.IO.Devices) != 3 {
		t.Fatalf("devices %+v", s.IO.Devices)
	}
	num(t, "discards", s.IO.Devices[0].Discards, 6)
	if s.IO.Devices[0].Extra["cost.usage"] != 7 {
		t.Errorf("extra %v", s.IO.Devices[0].Extra)
	}
	unknown(t, "bytes of an idle device", s.IO.Devices[1].ReadBytes)
	num(t, "bytes of another device", s.IO.Devices[2].ReadBytes, 9)
	num(t, "pids", s.Pids.Usage, 3)
	num(t, "pids failures", s.Pids.Failures, 2)
	if len(s.Hugetlb) != 1 {
		t.Errorf("huge pages %v", s.Hugetlb)
	}
	num(t, "huge limit", s.Hugetlb["2MB"].Limit, 4194304)
	num(t, "huge reserved", s.Hugetlb["2MB"].Reserved.Usage, 2097152)
	if s.Hugetlb["2MB"].NUMA[0] != 5 {
		t.Errorf("huge NUMA %v", s.Hugetlb["2MB"].NUMA)
	}
	num(t, "rdma objects", s.RDMA["mlx5_0"].Objects.Usage, 2)
	num(t, "rdma handle limit", s.RDMA["mlx5_0"].Handles.Limit, NoLimit)
	unknown(t, "rdma use of an idle device", s.RDMA["mlx5_1"].Objects.Usage)
	num(t, "misc", s.Misc["sev"].Limit, 4)
	num(t, "misc failures", s.Misc["sev"].Failures, 9)
	num(t, "dmem", s.DMem["drm/0000:03:00.0/vram0"].Usage, 1024)
	num(t, "descendants", s.Tree.Descendants, 2)
	num(t, "frozen", s.Tree.Frozen, 11000)
}

func TestStatsOfLegacy(t *testing.T) {
	memory := "sys/fs/cgroup/memory/web/memory."
	g := fakeGroup(t, map[string]string{
		"proc/self/mountinfo": `36 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
38 31 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
39 31 0:34 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio
40 31 0:35 / /sys/fs/cgroup/hugetlb rw - cgroup cgroup rw,hugetlb
`,
		"sys/kernel/mm/hugepages/hugepages-64kB/":                           "",
		"sys/fs/cgroup/cpu,cpuacct/web/cpuacct.usage_percpu":                "10 20 \n",
		"sys/fs/cgroup/cpu,cpuacct/web/cpuacct.usage_all":                   "cpu user system\n0 6 4\n1 15 5\n",
		"sys/fs/cgroup/cpu,cpuacct/web/cpuacct.stat":                        "user 3\nsystem 2\n",
		"sys/fs/cgroup/cpu,cpuacct/web/cpu.stat":                            "nr_periods 4\nnr_throttled 3\nthrottled_time 2\nnr_bursts 1\nburst_time 9\n",
		memory + "usage_in_bytes":                                           "100\n",
		memory + "max_usage_in_bytes":                                       "200\n",
		memory + "limit_in_bytes":                                           "9223372036854771712\n",
		memory + "failcnt":                                                  "1\n",
		memory + "memsw.usage_in_bytes":                                     "110\n",
		memory + "memsw.limit_in_bytes":                                     "500\n",
		memory + "kmem.tcp.usage_in_bytes":                                  "0\n",
		memory + "stat":                                                     "cache 1\ninactive_file 5\ntotal_inactive_file 30\ntotal_swap 10\n",
		memory + "oom_control":                                              "oom_kill_disable 1\nunder_oom 0\noom_kill 7\n",
		memory + "numa_stat":                                                "total=6 N0=4 N1=2\n",
		"sys/fs/cgroup/blkio/web/blkio.throttle.io_service_bytes_recursive": "8:0 Read 1\n8:0 Write 2\n8:0 Sync 3\n8:0 Async 0\n8:0 Discard 4\n8:0 Total 7\nTotal 7\n",
		"sys/fs/cgroup/blkio/web/blkio.throttle.io_serviced_recursive":      "8:0 Read 5\n8:0 Write 6\nTotal 11\n",
		"sys/fs/cgroup/blkio/web/blkio.bfq.io_service_bytes_recursive":      "8:0 Read 99\n8:16 Read 50\nTotal 149\n",
		"sys/fs/cgroup/blkio/web/blkio.bfq.io_serviced_recursive":           "8:0 Read 99\n8:16 Read 7\nTotal 106\n",
		"sys/fs/cgroup/blkio/web/blkio.bfq.io_service_time_recursive":       "8:16 Read 1234\nTotal 1234\n",
		"sys/fs/cgroup/hugetlb/web/hugetlb.64KB.usage_in_bytes":             "65536\n",
		"sys/fs/cgroup/hugetlb/web/hugetlb.64KB.failcnt":                    "2\n",
		"sys/fs/cgroup/hugetlb/web/hugetlb.64KB.rsvd.usage_in_bytes":        "0\n",
	})
	s, err := g.Stats(Everything | NUMA)
	if err != nil {
		t.Fatal(err)
	}
	num(t, "usage", s.CPU.Usage, 30)
	num(t, "user", s.CPU.User, 18)
	num(t, "system", s.CPU.System, 12)
	num(t, "throttled", s.CPU.Throttled, 2)
	if len(s.CPU.PerCPUUser) != 2 || s.CPU.PerCPUUser[1] != 15 || s.CPU.PerCPU[0] != 10 {
		t.Errorf("per CPU %v %v", s.CPU.PerCPU, s.CPU.PerCPUUser)
	}
	m := s.Memory
	num(t, "memory limit", m.Limit, NoLimit)
	num(t, "memory failures", m.Failures, 1)
	num(t, "memory and swap", m.MemoryAndSwap.Limit, 500)
	unknown(t, "its peak", m.MemoryAndSwap.Peak)
	num(t, "swap", m.Swap.Usage, 10)
	num(t, "TCP", m.KernelTCP.Usage, 0)
	if m.Kernel != nil || m.Zswap != nil {
		t.Errorf("what is not there: %+v %+v", m.Kernel, m.Zswap)
	}
	num(t, "OOM kills", m.Events.OOMKill, 7)
	unknown(t, "OOMs", m.Events.OOM)
	if m.OOMKillDisabled == nil || !*m.OOMKillDisabled || m.UnderOOM == nil || *m.UnderOOM {
		t.Errorf("OOM killer %v %v", m.OOMKillDisabled, m.UnderOOM)
	}
	num(t, "working set", m.WorkingSet(), 70)
	if m.NUMA["total"][1] != 2 {
		t.Errorf("NUMA %v", m.NUMA)
	}
	if len(s.IO.Devices) != 2 {
		t.Fatalf("devices %+v", s.IO.Devices)
	}
	num(t, "read", s.IO.Devices[0].ReadBytes, 1)
	num(t, "writes", s.IO.Devices[0].Writes, 6)
	if s.IO.Devices[0].Extra["sync_bytes"] != 3 {
		t.Errorf("extra %v", s.IO.Devices[0].Extra)
	}
	num(t, "read under BFQ", s.IO.Devices[1].ReadBytes, 50)
	if s.IO.Devices[1].Extra["io_service_time.Read"] != 1234 {
		t.Errorf("extra %v", s.IO.Devices[1].Extra)
	}
	num(t, "huge", s.Hugetlb["64KB"].Usage, 65536)
	num(t, "huge failures", s.Hugetlb["64KB"].Failures, 2)
	if s.Tree != nil || s.Pids != nil || s.RDMA != nil {
		t.Errorf("what is not there: %v %v %v", s.Tree, s.Pids, s.RDMA)
	}
}

// fakeGroup opens /web in a made-up tree.
func fakeGroup(t testing.TB, files map[string]string) *Group {
	t.Helper()
	g, err := fakeHost(t, files).Open("/web")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// Counters of a real group that did something, told by the files themselves.
func TestStatsOfThisMachine(t *testing.T) {
	host := hostForTest(t)
	g := makeGroup(t, host)
	limit := int64(64 << 20)
	pids := int64(77)
	resources := &specs.LinuxResources{}
	if host.Controller("memory") != nil {
		resources.Memory = &specs.LinuxMemory{Limit: &limit}
	}
	if host.Controller("pids") != nil {
		resources.Pids = &specs.LinuxPids{Limit: &pids}
	}
	set(t, g, resources)
	run(t, g, "eat:8")
	s, err := g.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if s.CPU == nil || s.CPU.Usage == nil || *s.CPU.Usage == 0 {
		t.Errorf("processor time %+v", s.CPU)
	}
	if host.Controller("memory") != nil {
		num(t, "memory limit", s.Memory.Limit, uint64(limit))
		if s.Memory.Peak != nil && *s.Memory.Peak < 8<<20 {
			t.Errorf("memory peak %d", *s.Memory.Peak)
		}
		if len(s.Memory.Stat) < 10 {
			t.Errorf("memory.stat %v", s.Memory.Stat)
		}
	}
	if host.Controller("pids") != nil {
		num(t, "pids limit", s.Pids.Limit, uint64(pids))
		num(t, "pids", s.Pids.Usage, 0)
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
	if host.Unified() != nil {
		num(t, "descendants", s.Tree.Descendants, 0)
	}
	if cpuset := host.Controller("cpuset"); cpuset != nil && (s.Cpuset == nil || s.Cpuset.CPUs == "") {
		t.Errorf("cpuset %+v", s.Cpuset)
	}
	if h := host.Controller("cpuacct"); h != nil {
		want := readFileOf(t, g, "cpuacct", "cpuacct.usage")
		if strconv.FormatUint(*s.CPU.Usage, 10) != want {
			t.Errorf("usage %d, the kernel says %s", *s.CPU.Usage, want)
		}
	}
}

func TestStatsOfRemovedGroup(t *testing.T) {
	host := hostForTest(t)
	g, err := host.Create(testPath())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Stats(); err != nil {
		t.Error(err)
	}
	for _, dir := range g.Made() {
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := g.Stats(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %+v, %v", s, err)
	}
	if err := g.Destroy(); err != nil {
		t.Error(err)
	}
}

func TestHugePageSize(t *testing.T) {
	for name, want := range map[string]string{"hugepages-64kB": "64KB", "hugepages-2048kB": "2MB", "hugepages-1048576kB": "1GB",
		"hugepages-16777216kB": "16GB", "hugepages-x": "", "node0": "", "hugepages-9kb": ""} {
		if got, ok := hugePageSize(name); got != want || ok != (want != "") {
			t.Errorf("%s: %q %v, want %q", name, got, ok, want)
		}
	}
}

func FuzzFlatKeyed(f *testing.F) {
	f.Add([]byte("a 1\nb 18446744073709551615\nb 18446744073709551616\n"))
	f.Add([]byte("low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\nsock_throttled 7\n"))
	f.Add([]byte("populated 1\nfrozen 0\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for key, value := range flatKeyed(text) {
			if !strings.Contains(string(text), key) {
				t.Errorf("key %q out of nothing", key)
			}
			_ = value
		}
		parseMemoryEvents(text)
		parseCoreEvents(text)
	})
}

func FuzzPids(f *testing.F) {
	f.Add([]byte("1\n22\n0\n4194304"))
	f.Fuzz(func(t *testing.T, text []byte) {
		pids, err := parsePids(text, nil)
		for _, pid := range pids {
			if err == nil && pid <= 0 {
				t.Errorf("pid %d", pid)
			}
		}
	})
}

func FuzzIO(f *testing.F) {
	f.Add([]byte("8:0 rbytes=1 wbytes=2 rios=3\n8:16 \n8:0 Read 1\nTotal 5\n"))
	f.Add([]byte("8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6 cost.usage=7\n"))
	f.Add([]byte("8:0 Read 1\n8:0 Write 2\n8:0 Sync 3\n8:0 Async 4\n8:0 Discard 5\n8:0 Total 6\n259:1 Read 7\nTotal 8\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		parseIOStat(text)
		fresh := map[[2]uint32]bool{}
		list := parseBlkio(text, nil, fresh, "bytes")
		list = parseBlkio(text, list, fresh, "ios")
		if len(list) != len(fresh) {
			t.Errorf("%d devices, %d of them new", len(list), len(fresh))
		}
	})
}

func FuzzPressure(f *testing.F) {
	f.Add([]byte("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=1e9 avg60=NaN avg300=0 total=-1\n"))
	f.Fuzz(func(t *testing.T, text []byte) { parsePressure(text) })
}

func FuzzNested(f *testing.F) {
	f.Add([]byte("mlx5_0 hca_handle=2 hca_object=max\nanon N0=1 N1=2\ntotal=3 N0=4\n0 1 2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		nestedKeyed(text, func(name, key string, value *uint64) {
			if name == "" || value == nil {
				t.Errorf("%q %q %v", name, key, value)
			}
		})
		for _, nodes := range parseNUMA(text) {
			_ = maps.Keys(nodes)
		}
		user, system := parseUsageAll(text)
		if len(user) != len(system) {
			t.Errorf("%d and %d processors", len(user), len(system))
		}
	})
}

func BenchmarkStats(b *testing.B) {
	host := hostForTest(b)
	g := makeGroup(b, host)
	for b.Loop() {
		if _, err := g.Stats(); err != nil {
			b.Fatal(err)
		}
	}
}
