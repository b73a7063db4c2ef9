package ledger

import (
	"slices"
	"strings"
)

// Entry is one row: a field of the resources object, or a v2 file with a
// typed meaning that is reached through "unified" only.
type Entry struct {
	// Field is the JSON pointer below the resources object. A "*" stands
	// for an element of an array or the name of a device.
	Field string
	// Meaning says what the value is and what its special values do.
	Meaning string
	V1, V2  Place
}

// Place is where a field goes on one version of cgroups.
type Place struct {
	// Controller is empty where the version has no controller for it, or has
	// it without any, as cgroup.max.depth.
	Controller string
	// Files are the control files in order of preference. "<size>" stands
	// for the size of a huge page. Without any, the field cannot be honoured.
	Files []string
	// Properties are the systemd properties that carry it.
	Properties []UnitProperty
	// Conversion says how the value is changed on its way, if it is.
	Conversion string
	// Missing says why there is no file, for the error.
	Missing string
}

// UnitProperty is a systemd property and the version that it came with, as the
// man page systemd.resource-control(5) says it.
type UnitProperty struct {
	Name  string
	Since int
}

// fields are the rows that have a field of their own, in the order in which
// Translate works.
var fields = []Entry{
	{
		Field: "/memory/limit", Meaning: "bytes; -1 no limit, 0 leaves it unchanged",
		V1: Place{Controller: "memory", Files: []string{"memory.limit_in_bytes"},
			Properties: []UnitProperty{{"MemoryLimit", 208}}},
		V2: Place{Controller: "memory", Files: []string{"memory.max"},
			Properties: []UnitProperty{{"MemoryMax", 231}}, Conversion: "-1 is max"},
	},
	{
		Field: "/memory/reservation", Meaning: "bytes; -1 no limit, 0 leaves it unchanged",
		V1: Place{Controller: "memory", Files: []string{"memory.soft_limit_in_bytes"}},
		V2: Place{Controller: "memory", Files: []string{"memory.low"},
			Properties: []UnitProperty{{"MemoryLow", 231}}, Conversion: "-1 is max"},
	},
	{
		Field: "/memory/swap", Meaning: "bytes of memory and swap together; -1 no limit, 0 leaves it unchanged",
		V1: Place{Controller: "memory", Files: []string{"memory.memsw.limit_in_bytes"}},
		V2: Place{Controller: "memory", Files: []string{"memory.swap.max"},
			Properties: []UnitProperty{{"MemorySwapMax", 232}}, Conversion: "the memory limit is taken off; -1 is max"},
	},
	{
		Field: "/memory/kernel", Meaning: "bytes; obsolete, left out with a warning where the kernel has no file",
		V1: Place{Controller: "memory", Files: []string{"memory.kmem.limit_in_bytes"}},
		V2: Place{Controller: "memory", Missing: "cgroup v2 has no file for it: kernel memory is part of memory.max"},
	},
	{
		Field: "/memory/kernelTCP", Meaning: "bytes; -1 no limit, 0 leaves it unchanged",
		V1: Place{Controller: "memory", Files: []string{"memory.kmem.tcp.limit_in_bytes"}},
		V2: Place{Controller: "memory", Missing: "cgroup v2 has no file for it: TCP buffers are part of memory.max"},
	},
	{
		Field: "/memory/swappiness", Meaning: "0 to 100",
		V1: Place{Controller: "memory", Files: []string{"memory.swappiness"}},
		V2: Place{Controller: "memory", Missing: "cgroup v2 has no file for it: vm.swappiness holds for all cgroups"},
	},
	{
		Field: "/memory/disableOOMKiller", Meaning: "true: processes over the limit wait instead of being killed",
		V1: Place{Controller: "memory", Files: []string{"memory.oom_control"}, Conversion: "true is 1"},
		V2: Place{Controller: "memory", Missing: "cgroup v2 has no file for it: its OOM killer is always on", Conversion: "false is what v2 does"},
	},
	{
		Field: "/memory/useHierarchy", Meaning: "true: children count against this cgroup",
		V1: Place{Controller: "memory", Files: []string{"memory.use_hierarchy"}, Conversion: "true is 1"},
		V2: Place{Controller: "memory", Missing: "cgroup v2 has no file for it: it is always hierarchical", Conversion: "true is what v2 does"},
	},
	{
		Field: "/memory/checkBeforeUpdate", Meaning: "true: a limit below the present use is refused",
		V1: Place{Controller: "memory", Missing: "no file: the kernel refuses by itself", Conversion: "checked against memory.usage_in_bytes"},
		V2: Place{Controller: "memory", Missing: "no file", Conversion: "checked against memory.current"},
	},
	{
		Field: "/cpu/shares", Meaning: "2 to 262144; 0 leaves it unchanged",
		V1: Place{Controller: "cpu", Files: []string{"cpu.shares"},
			Properties: []UnitProperty{{"CPUShares", 208}}, Conversion: "clamped to 2 and 262144"},
		V2: Place{Controller: "cpu", Files: []string{"cpu.weight"},
			Properties: []UnitProperty{{"CPUWeight", 232}},
			Conversion: "shares to weight: logarithmic 10^((l²+125l)/612-7/34), l=log2(shares), or linear 1+(shares-2)*9999/262142"},
	},
	{
		Field: "/cpu/quota", Meaning: "microseconds in each period; -1 no limit, 0 leaves it unchanged",
		V1: Place{Controller: "cpu", Files: []string{"cpu.cfs_quota_us"},
			Properties: []UnitProperty{{"CPUQuotaPerSecUSec", 213}}, Conversion: "property: per second, rounded up to 10 ms"},
		V2: Place{Controller: "cpu", Files: []string{"cpu.max"},
			Properties: []UnitProperty{{"CPUQuotaPerSecUSec", 213}},
			Conversion: "first word, -1 is max; property: per second, rounded up to 10 ms"},
	},
	{
		Field: "/cpu/period", Meaning: "microseconds, 1000 to 1000000; 0 leaves it unchanged",
		V1: Place{Controller: "cpu", Files: []string{"cpu.cfs_period_us"},
			Properties: []UnitProperty{{"CPUQuotaPeriodUSec", 242}}},
		V2: Place{Controller: "cpu", Files: []string{"cpu.max"},
			Properties: []UnitProperty{{"CPUQuotaPeriodUSec", 242}}, Conversion: "second word"},
	},
	{
		Field: "/cpu/burst", Meaning: "microseconds, not more than the quota",
		V1: Place{Controller: "cpu", Files: []string{"cpu.cfs_burst_us"}},
		V2: Place{Controller: "cpu", Files: []string{"cpu.max.burst"}},
	},
	{
		Field: "/cpu/realtimeRuntime", Meaning: "microseconds in each realtime period",
		V1: Place{Controller: "cpu", Files: []string{"cpu.rt_runtime_us"}},
		V2: Place{Controller: "cpu", Missing: "cgroup v2 has no file for it: it does not divide realtime"},
	},
	{
		Field: "/cpu/realtimePeriod", Meaning: "microseconds; 0 leaves it unchanged",
		V1: Place{Controller: "cpu", Files: []string{"cpu.rt_period_us"}},
		V2: Place{Controller: "cpu", Missing: "cgroup v2 has no file for it: it does not divide realtime"},
	},
	{
		Field: "/cpu/idle", Meaning: "1: SCHED_IDLE, 0: normal",
		V1: Place{Controller: "cpu", Files: []string{"cpu.idle"}},
		V2: Place{Controller: "cpu", Files: []string{"cpu.idle"},
			Properties: []UnitProperty{{"CPUWeight", 252}}, Conversion: "property: 1 is the weight idle (0)"},
	},
	{
		Field: "/cpu/cpus", Meaning: "list of CPUs",
		V1: Place{Controller: "cpuset", Files: []string{"cpuset.cpus"},
			Properties: []UnitProperty{{"AllowedCPUs", 244}}, Conversion: "property: bitmap, CPU 0 lowest bit of byte 0"},
		V2: Place{Controller: "cpuset", Files: []string{"cpuset.cpus"},
			Properties: []UnitProperty{{"AllowedCPUs", 244}}, Conversion: "property: bitmap, CPU 0 lowest bit of byte 0"},
	},
	{
		Field: "/cpu/mems", Meaning: "list of memory nodes",
		V1: Place{Controller: "cpuset", Files: []string{"cpuset.mems"},
			Properties: []UnitProperty{{"AllowedMemoryNodes", 244}}, Conversion: "property: bitmap, node 0 lowest bit of byte 0"},
		V2: Place{Controller: "cpuset", Files: []string{"cpuset.mems"},
			Properties: []UnitProperty{{"AllowedMemoryNodes", 244}}, Conversion: "property: bitmap, node 0 lowest bit of byte 0"},
	},
	{
		Field: "/pids/limit", Meaning: "processes and threads; -1 no limit",
		V1: Place{Controller: "pids", Files: []string{"pids.max"},
			Properties: []UnitProperty{{"TasksMax", 227}}, Conversion: "-1 is max; TasksMax has no 0, and gets 1"},
		V2: Place{Controller: "pids", Files: []string{"pids.max"},
			Properties: []UnitProperty{{"TasksMax", 227}}, Conversion: "-1 is max; TasksMax has no 0, and gets 1"},
	},
	{
		Field: "/blockIO/weight", Meaning: "10 to 1000; 0 leaves it unchanged",
		// systemd takes the weight for one of 1 to 10000 where the file is BFQ's.
		V1: Place{Controller: "blkio", Files: []string{"blkio.bfq.weight", "blkio.weight"},
			Properties: []UnitProperty{{"BlockIOWeight", 208}}},
		V2: Place{Controller: "io", Files: []string{"io.weight", "io.bfq.weight"},
			Properties: []UnitProperty{{"IOWeight", 230}},
			Conversion: "io.weight: 1+(weight-10)*9999/990, clamped to 10 and 1000; io.bfq.weight: unchanged"},
	},
	{
		Field: "/blockIO/leafWeight", Meaning: "10 to 1000; only where the kernel still has CFQ",
		V1: Place{Controller: "blkio", Files: []string{"blkio.leaf_weight"}},
		V2: Place{Controller: "io", Missing: "cgroup v2 has no file for it: no process competes with a child cgroup there"},
	},
	{
		Field: "/blockIO/weightDevice/*/weight", Meaning: "10 to 1000 for one device",
		V1: Place{Controller: "blkio", Files: []string{"blkio.bfq.weight_device", "blkio.weight_device"}},
		V2: Place{Controller: "io", Files: []string{"io.weight", "io.bfq.weight"},
			Properties: []UnitProperty{{"IODeviceWeight", 230}},
			Conversion: "io.weight: 1+(weight-10)*9999/990, clamped to 10 and 1000; io.bfq.weight: unchanged"},
	},
	{
		Field: "/blockIO/weightDevice/*/leafWeight", Meaning: "10 to 1000 for one device; only where the kernel still has CFQ",
		V1: Place{Controller: "blkio", Files: []string{"blkio.leaf_weight_device"}},
		V2: Place{Controller: "io", Missing: "cgroup v2 has no file for it: no process competes with a child cgroup there"},
	},
	{
		Field: "/blockIO/throttleReadBpsDevice/*", Meaning: "bytes a second for one device; 0 no limit",
		V1: Place{Controller: "blkio", Files: []string{"blkio.throttle.read_bps_device"}},
		V2: Place{Controller: "io", Files: []string{"io.max"},
			Properties: []UnitProperty{{"IOReadBandwidthMax", 230}}, Conversion: "rbps=, 0 is max"},
	},
	{
		Field: "/blockIO/throttleWriteBpsDevice/*", Meaning: "bytes a second for one device; 0 no limit",
		V1: Place{Controller: "blkio", Files: []string{"blkio.throttle.write_bps_device"}},
		V2: Place{Controller: "io", Files: []string{"io.max"},
			Properties: []UnitProperty{{"IOWriteBandwidthMax", 230}}, Conversion: "wbps=, 0 is max"},
	},
	{
		Field: "/blockIO/throttleReadIOPSDevice/*", Meaning: "operations a second for one device; 0 no limit",
		V1: Place{Controller: "blkio", Files: []string{"blkio.throttle.read_iops_device"}},
		V2: Place{Controller: "io", Files: []string{"io.max"},
			Properties: []UnitProperty{{"IOReadIOPSMax", 230}}, Conversion: "riops=, 0 is max"},
	},
	{
		Field: "/blockIO/throttleWriteIOPSDevice/*", Meaning: "operations a second for one device; 0 no limit",
		V1: Place{Controller: "blkio", Files: []string{"blkio.throttle.write_iops_device"}},
		V2: Place{Controller: "io", Files: []string{"io.max"},
			Properties: []UnitProperty{{"IOWriteIOPSMax", 230}}, Conversion: "wiops=, 0 is max"},
	},
	{
		Field: "/hugepageLimits/*/limit", Meaning: "bytes of one size; the reservation where the kernel limits it, and the faults",
		V1: Place{Controller: "hugetlb", Files: []string{"hugetlb.<size>.limit_in_bytes", "hugetlb.<size>.rsvd.limit_in_bytes"}},
		V2: Place{Controller: "hugetlb", Files: []string{"hugetlb.<size>.max", "hugetlb.<size>.rsvd.max"}},
	},
	{
		Field: "/network/classID", Meaning: "class for tc, 0xAAAABBBB",
		V1: Place{Controller: "net_cls", Files: []string{"net_cls.classid"}},
		V2: Place{Missing: "cgroup v2 has no file for it: packets are matched by cgroup path there"},
	},
	{
		Field: "/network/priorities/*", Meaning: "priority of one interface",
		V1: Place{Controller: "net_prio", Files: []string{"net_prio.ifpriomap"}, Conversion: "NAME PRIORITY"},
		V2: Place{Missing: "cgroup v2 has no file for it: packets are matched by cgroup path there"},
	},
	{
		Field: "/rdma/*/hcaHandles", Meaning: "handles of one RDMA device",
		V1: Place{Controller: "rdma", Files: []string{"rdma.max"}, Conversion: "hca_handle="},
		V2: Place{Controller: "rdma", Files: []string{"rdma.max"}, Conversion: "hca_handle="},
	},
	{
		Field: "/rdma/*/hcaObjects", Meaning: "objects of one RDMA device",
		V1: Place{Controller: "rdma", Files: []string{"rdma.max"}, Conversion: "hca_object="},
		V2: Place{Controller: "rdma", Files: []string{"rdma.max"}, Conversion: "hca_object="},
	},
	{
		Field: "/devices", Meaning: "list of device rules, applied in order",
		V1: Place{Controller: "devices", Files: []string{"devices.allow", "devices.deny"},
			Properties: []UnitProperty{{"DevicePolicy", 208}, {"DeviceAllow", 208}},
			Conversion: "see package cgroup/device"},
		V2: Place{Controller: "devices", Properties: []UnitProperty{{"DevicePolicy", 208}, {"DeviceAllow", 208}},
			Missing: "no file: a BPF program of type cgroup_device", Conversion: "see package cgroup/device"},
	},
}

// unifiedFile is a v2 file with a typed meaning.
type unifiedFile struct {
	name, meaning string
	properties    []UnitProperty
}

// unifiedFiles are the rows that are reached through "unified", which takes
// any other file too.
var unifiedFiles = []unifiedFile{
	{"memory.min", "bytes or max: never reclaimed", []UnitProperty{{"MemoryMin", 240}}},
	{"memory.low", "bytes or max: reclaimed last", []UnitProperty{{"MemoryLow", 231}}},
	{"memory.high", "bytes or max: throttled above", []UnitProperty{{"MemoryHigh", 231}}},
	{"memory.max", "bytes or max", []UnitProperty{{"MemoryMax", 231}}},
	{"memory.swap.max", "bytes or max, of swap alone", []UnitProperty{{"MemorySwapMax", 232}}},
	{"memory.swap.high", "bytes or max, of swap alone", nil},
	{"memory.zswap.max", "bytes or max", []UnitProperty{{"MemoryZSwapMax", 253}}},
	{"memory.zswap.writeback", "0 or 1", []UnitProperty{{"MemoryZSwapWriteback", 256}}},
	{"memory.oom.group", "0 or 1: all of the cgroup is killed together", []UnitProperty{{"OOMPolicy", 253}}},
	{"cpu.weight", "1 to 10000", []UnitProperty{{"CPUWeight", 232}}},
	{"cpu.idle", "0 or 1", []UnitProperty{{"CPUWeight", 252}}},
	{"cpu.max", "QUOTA [PERIOD] in microseconds, or max", []UnitProperty{{"CPUQuotaPerSecUSec", 213}, {"CPUQuotaPeriodUSec", 242}}},
	{"cpu.max.burst", "microseconds", nil},
	{"cpu.uclamp.min", "percent or max", nil},
	{"cpu.uclamp.max", "percent or max", nil},
	{"cpuset.cpus", "list of CPUs", []UnitProperty{{"AllowedCPUs", 244}}},
	{"cpuset.mems", "list of memory nodes", []UnitProperty{{"AllowedMemoryNodes", 244}}},
	{"cpuset.cpus.partition", "member, root or isolated", nil},
	{"pids.max", "number or max", []UnitProperty{{"TasksMax", 227}}},
	{"io.weight", "1 to 10000, or MAJ:MIN WEIGHT", []UnitProperty{{"IOWeight", 230}, {"IODeviceWeight", 230}}},
	{"io.bfq.weight", "1 to 1000, or MAJ:MIN WEIGHT", nil},
	{"io.max", "MAJ:MIN rbps= wbps= riops= wiops=", []UnitProperty{{"IOReadBandwidthMax", 230}, {"IOWriteBandwidthMax", 230}, {"IOReadIOPSMax", 230}, {"IOWriteIOPSMax", 230}}},
	{"io.latency", "MAJ:MIN target=MICROSECONDS", []UnitProperty{{"IODeviceLatencyTargetUSec", 240}}},
	{"hugetlb.<size>.max", "bytes or max", nil},
	{"hugetlb.<size>.rsvd.max", "bytes or max", nil},
	{"rdma.max", "DEVICE hca_handle= hca_object=", nil},
	{"misc.max", "RESOURCE VALUE", nil},
	{"dmem.min", "REGION BYTES", nil},
	{"dmem.low", "REGION BYTES", nil},
	{"dmem.max", "REGION BYTES", nil},
	{"cgroup.max.depth", "levels below, or max", nil},
	{"cgroup.max.descendants", "cgroups below, or max", nil},
	{"cgroup.pressure", "0 or 1: pressure stall information", nil},
}

// Table gives the whole ledger.
func Table() []Entry {
	all := make([]Entry, 0, len(fields)+len(unifiedFiles))
	all = append(all, fields...)
	for _, f := range unifiedFiles {
		all = append(all, f.entry())
	}
	return all
}

func (f *unifiedFile) entry() Entry {
	e := Entry{
		Field:   "/unified/" + f.name,
		Meaning: f.meaning,
		V1:      Place{Missing: "unified needs the controller on cgroup v2"},
		V2:      Place{Files: []string{f.name}, Properties: f.properties},
	}
	if controller, _, _ := strings.Cut(f.name, "."); controller != "cgroup" {
		e.V2.Controller = controller
	} else {
		e.V1.Missing = "unified needs cgroup v2, which a hybrid host has too"
	}
	return e
}

// entry finds a row by its field. The table is short and most objects ask for
// a handful of rows, so a walk beats a map that every start would have to build.
func entry(field string) *Entry {
	for i := range fields {
		if fields[i].Field == field {
			return &fields[i]
		}
	}
	panic("ledger: no row " + field)
}

// Carries says whether a property of a unit is about the file of the write.
func (w Write) Carries(property string) bool {
	in := func(files []string, properties []UnitProperty) bool {
		return slices.Contains(files, w.File) && slices.ContainsFunc(properties, func(p UnitProperty) bool { return p.Name == property })
	}
	for i := range fields {
		place := &fields[i].V1
		if w.V2 {
			place = &fields[i].V2
		}
		if in(place.Files, place.Properties) {
			return true
		}
	}
	return w.V2 && in([]string{w.File}, unifiedProperties(w.File))
}

// unifiedProperties finds the properties of a v2 file.
func unifiedProperties(name string) []UnitProperty {
	for i := range unifiedFiles {
		if unifiedFiles[i].name == name {
			return unifiedFiles[i].properties
		}
	}
	return nil
}
