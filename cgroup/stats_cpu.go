package cgroup

import (
	"bytes"

	"github.com/berth-runtime/berth/internal/ptr"
)

// CPUStats is processor time, in nanoseconds.
type CPUStats struct {
	Usage     *uint64 `json:"usage,omitempty"`
	User      *uint64 `json:"user,omitempty"`
	System    *uint64 `json:"system,omitempty"`
	Nice      *uint64 `json:"nice,omitempty"`      // part of User at low priority
	ForceIdle *uint64 `json:"forceIdle,omitempty"` // of siblings, by core scheduling

	// By processor, on version 1 only.
	PerCPU       []uint64 `json:"perCPU,omitempty"`
	PerCPUUser   []uint64 `json:"perCPUUser,omitempty"`
	PerCPUSystem []uint64 `json:"perCPUSystem,omitempty"`

	Periods          *uint64 `json:"periods,omitempty"` // of the quota
	ThrottledPeriods *uint64 `json:"throttledPeriods,omitempty"`
	Throttled        *uint64 `json:"throttled,omitempty"`
	ThrottledHere    *uint64 `json:"throttledHere,omitempty"` // by this group's own quota, and not a parent's
	Bursts           *uint64 `json:"bursts,omitempty"`
	Burst            *uint64 `json:"burst,omitempty"`

	Pressure    *Pressure `json:"pressure,omitempty"`
	IRQPressure *Pressure `json:"irqPressure,omitempty"`
}

func readCPU(r *statsReader, s *Stats, _ Part) {
	u, acct, cpu := r.g.unified(), r.g.node("cpuacct"), r.g.node("cpu")
	c := &CPUStats{}
	before := r.count
	if r.totals {
		c.Usage = cpuUsage(r, acct)
		c.Pressure = r.pressure(u, "cpu.pressure")
		if r.count > before {
			s.CPU = c
		}
		return
	}
	if acct != nil && acct.Version == 1 {
		if text, ok := r.text(acct, "cpuacct.usage_percpu"); ok {
			c.PerCPU = parseNumbers(text)
			c.Usage = sum(c.PerCPU)
		}
		if text, ok := r.text(acct, "cpuacct.usage_all"); ok {
			c.PerCPUUser, c.PerCPUSystem = parseUsageAll(text)
			c.User, c.System = sum(c.PerCPUUser), sum(c.PerCPUSystem)
		}
		if text, ok := r.text(acct, "cpuacct.stat"); ok {
			c.divide(text)
		}
	}
	// Version 2 counts time without a controller; the quota's figures are
	// where the controller is.
	if text, ok := r.text(u, "cpu.stat"); ok {
		c.fill(text, c.Usage != nil)
	}
	if cpu != nil && cpu != u {
		if text, ok := r.text(cpu, "cpu.stat"); ok {
			c.fill(text, true)
		}
	}
	if text, ok := r.text(cpu, "cpu.stat.local"); ok {
		for key, value := range flatKeyed(text) {
			switch key {
			case "throttled_usec":
				c.ThrottledHere = ptr.To(value * 1000)
			case "throttled_time":
				c.ThrottledHere = ptr.To(value)
			}
		}
	}
	c.Pressure = r.pressure(u, "cpu.pressure")
	c.IRQPressure = r.pressure(u, "irq.pressure")
	if r.count > before {
		s.CPU = c
	}
}

// cpuUsage reads the time alone, from one file.
func cpuUsage(r *statsReader, acct *node) *uint64 {
	if acct != nil && acct.Version == 1 {
		return r.number(acct, "cpuacct.usage")
	}
	text, ok := r.text(r.g.unified(), "cpu.stat")
	if !ok {
		return nil
	}
	usage := valueOf(text, "usage_usec")
	if usage != nil {
		*usage *= 1000
	}
	return usage
}

// divide splits the time used as cpuacct.stat does. usage_all counts what each tick found, which
// for a short command is nothing; cpuacct.stat is the whole time divided by that, but rounded to
// ticks.
func (c *CPUStats) divide(stat []byte) {
	const tick = 1e9 / 100 // USER_HZ, on every machine that Go runs on
	var user, system uint64
	for key, value := range flatKeyed(stat) {
		switch key {
		case "user":
			user = value
		case "system":
			system = value
		}
	}
	if c.Usage == nil {
		c.User, c.System = ptr.To(user*tick), ptr.To(system*tick)
		return
	}
	if user == 0 && system == 0 {
		user = 1 // less than a tick in all, most of it likely the program's own
	}
	share := min(*c.Usage, uint64(float64(*c.Usage)*(float64(user)/(float64(user)+float64(system)))))
	c.User, c.System = ptr.To(share), ptr.To(*c.Usage-share)
}

// fill takes the lines of a cpu.stat of either version; with timed, the times
// themselves are known already.
func (c *CPUStats) fill(text []byte, timed bool) {
	for key, value := range flatKeyed(text) {
		switch key {
		case "usage_usec":
			if !timed {
				c.Usage = ptr.To(value * 1000)
			}
		case "user_usec":
			if !timed {
				c.User = ptr.To(value * 1000)
			}
		case "system_usec":
			if !timed {
				c.System = ptr.To(value * 1000)
			}
		case "nice_usec":
			c.Nice = ptr.To(value * 1000)
		case "core_sched.force_idle_usec":
			c.ForceIdle = ptr.To(value * 1000)
		case "nr_periods":
			c.Periods = ptr.To(value)
		case "nr_throttled":
			c.ThrottledPeriods = ptr.To(value)
		case "throttled_usec":
			c.Throttled = ptr.To(value * 1000)
		case "throttled_time":
			c.Throttled = ptr.To(value)
		case "nr_bursts":
			c.Bursts = ptr.To(value)
		case "burst_usec":
			c.Burst = ptr.To(value * 1000)
		case "burst_time":
			c.Burst = ptr.To(value)
		}
	}
}

// parseNumbers reads numbers between spaces.
func parseNumbers(text []byte) []uint64 {
	var list []uint64
	for field := range bytes.FieldsSeq(text) {
		value, ok := parseUint(field)
		if !ok {
			return nil
		}
		list = append(list, value)
	}
	return list
}

// parseUsageAll reads cpuacct.usage_all: a heading, and "CPU USER SYSTEM" lines
// in the order of the processors.
func parseUsageAll(text []byte) (user, system []uint64) {
	for line := range bytes.Lines(text) {
		if values := parseNumbers(line); len(values) == 3 {
			user = append(user, values[1])
			system = append(system, values[2])
		}
	}
	return user, system
}

func sum(values []uint64) *uint64 {
	if len(values) == 0 {
		return nil
	}
	var total uint64
	for _, value := range values {
		total += value
	}
	return &total
}

// CpusetStats is where a group may run, after what its parents leave it.
type CpusetStats struct {
	CPUs           string  `json:"cpus,omitempty"`
	Mems           string  `json:"mems,omitempty"`
	MemoryPressure *uint64 `json:"memoryPressure,omitempty"` // version 1's, where it is switched on
}

func readCpuset(r *statsReader, s *Stats, _ Part) {
	n := r.g.node("cpuset")
	if n == nil {
		return
	}
	cpus, mems := "cpuset.effective_cpus", "cpuset.effective_mems"
	if n.Version == 2 {
		cpus, mems = "cpuset.cpus.effective", "cpuset.mems.effective"
	}
	c := &CpusetStats{}
	if text, ok := r.text(n, cpus); ok {
		c.CPUs = string(bytes.TrimSpace(text))
		s.Cpuset = c
	}
	if text, ok := r.text(n, mems); ok {
		c.Mems = string(bytes.TrimSpace(text))
		s.Cpuset = c
	}
	if n.Version == 1 {
		c.MemoryPressure = r.number(n, "cpuset.memory_pressure")
	}
}
