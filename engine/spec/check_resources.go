package spec

import (
	"math"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// resources checks the limits of the container's cgroup. Values that mean "not
// set" or "no limit" to one of the engines pass: -1, and 0 where the kernel
// has no use for it.
func (c *checker) resources(p place, r *specs.LinuxResources) {
	c.deviceRules(p.at("devices"), r.Devices)
	if r.Memory != nil {
		c.memory(p.at("memory"), r.Memory)
	}
	if r.CPU != nil {
		c.cpu(p.at("cpu"), r.CPU)
	}
	if r.BlockIO != nil {
		c.blockIO(p.at("blockIO"), r.BlockIO)
	}
	c.hugepages(p.at("hugepageLimits"), r.HugepageLimits)
	if r.Network != nil {
		c.priorities(p.at("network"), r.Network)
	}
	c.rdma(p.at("rdma"), r.Rdma)
	c.unified(p.at("unified"), r.Unified)
}

func (c *checker) deviceRules(list place, rules []specs.LinuxDeviceCgroup) {
	for i := range rules {
		p, rule := list.nth(i), &rules[i]
		switch rule.Type {
		case "", "a", "c", "b":
		default:
			c.bad(p.at("type"), "unknown type "+quote(rule.Type)+", "+oneOf("a", "c", "b"))
		}
		if rule.Major != nil { // -1 is what Docker writes for "all"
			c.within(p.at("major"), *rule.Major, -1, mostMajor)
		}
		if rule.Minor != nil {
			c.within(p.at("minor"), *rule.Minor, -1, mostMinor)
		}
		switch {
		case rule.Access == "" || strings.Trim(rule.Access, "rwm") == "":
		case !strings.ContainsAny(rule.Access, "rwm"):
			c.bad(p.at("access"), "expected a composition of r, w and m, found "+quote(rule.Access))
		default: // the other runtimes pass over other letters, which say nothing
			c.warn(p.at("access"), "is read as a composition of r, w and m: "+quote(rule.Access))
		}
	}
}

func (c *checker) memory(p place, m *specs.LinuxMemory) {
	for _, v := range [5]struct {
		key   string
		value *int64
		//lint:ignore SA1019 a deprecated limit can be wrong too
	}{{"limit", m.Limit}, {"reservation", m.Reservation}, {"swap", m.Swap}, {"kernel", m.Kernel}, {"kernelTCP", m.KernelTCP}} {
		if v.value != nil && *v.value < -1 {
			c.bad(p.at(v.key), "expected a number of bytes, or -1 for no limit, found "+strconv.FormatInt(*v.value, 10))
		}
	}
	if m.Swap != nil && *m.Swap > 0 && m.Limit != nil {
		swap := p.at("swap")
		switch limit := *m.Limit; {
		case limit == -1:
			c.hint(swap, "limits memory and swap together, while memory alone is unlimited", "limit memory too, or set swap to -1")
		case limit > *m.Swap:
			c.hint(swap, "limits memory and swap together, so it can't be less than the memory limit: "+
				strconv.FormatInt(*m.Swap, 10)+" < "+strconv.FormatInt(limit, 10), "for no swap, make both the same")
		}
	}
	// Old engines write (uint64)-1 for "not set".
	if s := m.Swappiness; s != nil && *s > 100 && *s != math.MaxUint64 {
		c.bad(p.at("swappiness"), "expected 0 to 100, found "+strconv.FormatUint(*s, 10))
	}
}

// cpu checks the kernel's bounds for the bandwidth controller (tg_set_cfs_bandwidth):
// periods of a millisecond to a second, quotas of at least a millisecond.
func (c *checker) cpu(p place, cpu *specs.LinuxCPU) {
	const least, longest = 1000, 1000000
	if v := cpu.Period; v != nil && *v != 0 && (*v < least || *v > longest) {
		c.bad(p.at("period"), "expected 1000 to 1000000 microseconds, found "+strconv.FormatUint(*v, 10))
	}
	if v := cpu.Quota; v != nil && *v > 0 {
		if *v < least {
			c.hint(p.at("quota"), "expected at least 1000 microseconds, found "+strconv.FormatInt(*v, 10), "-1 means no limit")
		} else if cpu.Burst != nil && *cpu.Burst > uint64(*v) {
			c.bad(p.at("burst"), "must be no larger than the quota: "+strconv.FormatUint(*cpu.Burst, 10)+" > "+strconv.FormatInt(*v, 10))
		}
	}
	if v := cpu.RealtimeRuntime; v != nil {
		switch {
		case *v < -1:
			c.bad(p.at("realtimeRuntime"), "expected microseconds, or -1 for no limit, found "+strconv.FormatInt(*v, 10))
		case cpu.RealtimePeriod != nil && *cpu.RealtimePeriod != 0 && *v > 0 && uint64(*v) > *cpu.RealtimePeriod:
			c.bad(p.at("realtimeRuntime"), "must be no longer than the realtime period: "+strconv.FormatInt(*v, 10)+
				" > "+strconv.FormatUint(*cpu.RealtimePeriod, 10))
		}
	}
	if v := cpu.Idle; v != nil && *v != 0 && *v != 1 {
		c.bad(p.at("idle"), "expected 0 or 1, found "+strconv.FormatInt(*v, 10))
	}
	c.cpuList(p.at("cpus"), cpu.Cpus)
	c.cpuList(p.at("mems"), cpu.Mems)
}

func (c *checker) blockIO(p place, io *specs.LinuxBlockIO) {
	c.weight(p.at("weight"), io.Weight)
	c.weight(p.at("leafWeight"), io.LeafWeight)
	weights := p.at("weightDevice")
	for i := range io.WeightDevice {
		entry, d := weights.nth(i), &io.WeightDevice[i]
		c.blockDevice(entry, &d.LinuxBlockIODevice)
		if d.Weight == nil && d.LeafWeight == nil {
			c.bad(entry, "needs a weight or a leafWeight")
		}
		c.weight(entry.at("weight"), d.Weight)
		c.weight(entry.at("leafWeight"), d.LeafWeight)
	}
	for _, throttle := range [4]struct {
		key     string
		devices []specs.LinuxThrottleDevice
	}{
		{"throttleReadBpsDevice", io.ThrottleReadBpsDevice},
		{"throttleWriteBpsDevice", io.ThrottleWriteBpsDevice},
		{"throttleReadIOPSDevice", io.ThrottleReadIOPSDevice},
		{"throttleWriteIOPSDevice", io.ThrottleWriteIOPSDevice},
	} {
		list := p.at(throttle.key)
		for i := range throttle.devices {
			c.blockDevice(list.nth(i), &throttle.devices[i].LinuxBlockIODevice)
		}
	}
}

func (c *checker) blockDevice(p place, d *specs.LinuxBlockIODevice) {
	c.within(p.at("major"), d.Major, 0, mostMajor)
	c.within(p.at("minor"), d.Minor, 0, mostMinor)
}

// weight checks a weight of the blkio controller; 0 sets none.
func (c *checker) weight(p place, weight *uint16) {
	if weight != nil && *weight != 0 {
		c.within(p, int64(*weight), 10, 1000)
	}
}

func (c *checker) hugepages(list place, limits []specs.LinuxHugepageLimit) {
	for i := range limits {
		p, limit := list.nth(i), &limits[i]
		if !pageSize(limit.Pagesize) {
			c.hint(p.at("pageSize"), "expected a size like 64KB, 2MB or 1GB, found "+quote(limit.Pagesize),
				"the sizes of a machine are in /sys/kernel/mm/hugepages")
		}
		for j := range i {
			if limits[j].Pagesize == limit.Pagesize && limits[j].Limit != limit.Limit {
				c.bad(p.at("limit"), "differs from entry "+strconv.Itoa(j)+" for the same page size")
				break
			}
		}
	}
}

// pageSize matches [1-9][0-9]*[KMG]B, the form of the kernel's file names.
func pageSize(s string) bool {
	n := len(s) - 2
	if n < 1 || s[n+1] != 'B' || s[n] != 'K' && s[n] != 'M' && s[n] != 'G' || s[0] == '0' {
		return false
	}
	for _, digit := range []byte(s[:n]) {
		if digit < '0' || digit > '9' {
			return false
		}
	}
	return true
}

func (c *checker) priorities(p place, network *specs.LinuxNetwork) {
	list := p.at("priorities")
	for i := range network.Priorities {
		if why := interfaceName(network.Priorities[i].Name); why != "" {
			entry := list.nth(i)
			c.bad(entry.at("name"), why)
		}
	}
}

func (c *checker) rdma(all place, limits map[string]specs.LinuxRdma) {
	for _, device := range sortedKeys(limits) {
		p, limit := all.at(device), limits[device]
		if device == "" || strings.ContainsAny(device, "/ \n\x00") {
			c.bad(p, "is not the name of an RDMA device")
		}
		if limit.HcaHandles == nil && limit.HcaObjects == nil {
			c.bad(p, "needs hcaHandles or hcaObjects")
		}
	}
}

// unified checks the names of the cgroup v2 files that are to be written. Any
// name passes that stays in the directory, known or not, except for files whose
// writing is no setting.
func (c *checker) unified(all place, files map[string]string) {
	for _, name := range sortedKeys(files) {
		p := all.at(name)
		switch {
		case name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\n\x00"):
			c.bad(p, "is not the name of a file in the cgroup")
		case name == "cgroup.procs" || name == "cgroup.threads" || name == "cgroup.kill":
			c.bad(p, "is not a limit: writing it moves or kills processes")
		default:
			c.text(p, files[name])
		}
	}
}
