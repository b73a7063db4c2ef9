package view

import (
	"maps"
	"slices"
	"strconv"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/internal/json"
)

// JSON writes the statistics in the shape that clients of `events` read, which
// is runc's: version 2 is told in the words of version 1. What is not known is
// left out, or 0 where clients expect a number always.
func (s *Stats) JSON(w *json.Writer) {
	w.Object()
	w.Key("cpu").Object()
	s.cpu(w)
	w.End()
	w.Key("cpuset").Object()
	s.cpuset(w)
	w.End()
	w.Key("memory").Object()
	s.memory(w)
	w.End()
	w.Key("pids").Object()
	if s.Pids != nil {
		known(w, "current", s.Pids.Usage)
		if s.Pids.Limit != nil && *s.Pids.Limit != cgroup.NoLimit {
			known(w, "limit", s.Pids.Limit)
		}
	}
	w.End()
	w.Key("blkio").Object()
	s.blkio(w)
	w.End()
	w.Key("hugetlb").Object()
	for _, size := range slices.Sorted(maps.Keys(s.Hugetlb)) {
		h := s.Hugetlb[size]
		w.Key(size).Object()
		known(w, "usage", h.Usage)
		known(w, "max", h.Peak)
		w.Key("failcnt").Uint(value(h.Failures))
		w.End()
	}
	w.End()
	w.Key("intel_rdt").Object()
	if s.Rdt != nil {
		s.Rdt.write(w)
	}
	w.End()
	w.Key("network_interfaces").Array()
	for i := range s.Interfaces {
		s.Interfaces[i].write(w)
	}
	w.End()
	w.End()
}

// known writes a number where there is one.
func known(w *json.Writer, key string, n *uint64) {
	if n != nil {
		w.Key(key).Uint(*n)
	}
}

func value(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

func numbers(w *json.Writer, key string, list []uint64) {
	if len(list) == 0 {
		return
	}
	w.Key(key).Array()
	for _, n := range list {
		w.Uint(n)
	}
	w.End()
}

func (s *Stats) cpu(w *json.Writer) {
	c := s.CPU
	if c == nil {
		c = &cgroup.CPUStats{}
	}
	w.Key("usage").Object()
	known(w, "total", c.Usage)
	numbers(w, "percpu", c.PerCPU)
	numbers(w, "percpu_kernel", c.PerCPUSystem)
	numbers(w, "percpu_user", c.PerCPUUser)
	w.Key("kernel").Uint(value(c.System))
	w.Key("user").Uint(value(c.User))
	w.End()
	w.Key("throttling").Object()
	known(w, "periods", c.Periods)
	known(w, "throttledPeriods", c.ThrottledPeriods)
	known(w, "throttledTime", c.Throttled)
	w.End()
	pressure(w, c.Pressure)
}

func pressure(w *json.Writer, p *cgroup.Pressure) {
	if p == nil {
		return
	}
	w.Key("psi").Object()
	for _, line := range [...]struct {
		key  string
		line *cgroup.PressureLine
	}{{"some", p.Some}, {"full", p.Full}} {
		if line.line == nil {
			continue
		}
		w.Key(line.key).Object()
		w.Key("avg10").Raw(decimal(line.line.Avg10))
		w.Key("avg60").Raw(decimal(line.line.Avg60))
		w.Key("avg300").Raw(decimal(line.line.Avg300))
		w.Key("total").Uint(line.line.Total)
		w.End()
	}
	w.End()
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func (s *Stats) cpuset(w *json.Writer) {
	if s.Cpuset != nil {
		cpuList(w, "cpus", s.Cpuset.CPUs)
	}
	for i, name := range cpusetFlagNames {
		if i == 1 && s.Cpuset != nil {
			cpuList(w, "mems", s.Cpuset.Mems)
		}
		w.Key(name).Int(s.CpusetFlags[name])
	}
}

func cpuList(w *json.Writer, key, text string) {
	list, err := ledger.ParseList(text)
	if err != nil || text == "" {
		return
	}
	w.Key(key).Array()
	for n, left := 0, list.Len(); left > 0; n++ {
		if list.Has(n) {
			w.Uint(uint64(n))
			left--
		}
	}
	w.End()
}

func (s *Stats) memory(w *json.Writer) {
	m := s.Memory
	if m == nil {
		m = &cgroup.MemoryStats{}
	}
	cache, ok := m.Stat["cache"] // version 1
	if !ok {
		cache = m.Stat["file"]
	}
	w.Key("cache").Uint(cache)
	memoryEntry(w, "usage", &m.Counter)
	memoryEntry(w, "swap", memoryAndSwap(m))
	memoryEntry(w, "kernel", m.Kernel)
	memoryEntry(w, "kernelTCP", m.KernelTCP)
	if len(m.Stat) > 0 {
		w.Key("raw").Object()
		for _, name := range slices.Sorted(maps.Keys(m.Stat)) {
			w.Key(name).Uint(m.Stat[name])
		}
		w.End()
	}
	pressure(w, m.Pressure)
}

// memoryAndSwap is the sum that version 1 counts; on version 2 it is made of its
// parts.
func memoryAndSwap(m *cgroup.MemoryStats) *cgroup.Counter {
	if m.MemoryAndSwap != nil || m.Swap == nil || m.Swap.Usage == nil || m.Swap.Limit == nil {
		return m.MemoryAndSwap
	}
	usage, limit := value(m.Usage)+*m.Swap.Usage, uint64(cgroup.NoLimit)
	if *m.Swap.Limit != cgroup.NoLimit && value(m.Limit) != cgroup.NoLimit {
		limit = value(m.Limit) + *m.Swap.Limit
	}
	c := &cgroup.Counter{Usage: &usage, Limit: &limit}
	if m.SwapEvents != nil {
		c.Failures = m.SwapEvents.Max
	}
	return c
}

func memoryEntry(w *json.Writer, key string, c *cgroup.Counter) {
	if c == nil {
		c = &cgroup.Counter{}
	}
	w.Key(key).Object()
	w.Key("limit").Uint(value(c.Limit))
	known(w, "usage", c.Usage)
	known(w, "max", c.Peak)
	w.Key("failcnt").Uint(value(c.Failures))
	w.End()
}

// blkio writes lists of version 1's form: an entry for each device and
// operation.
func (s *Stats) blkio(w *json.Writer) {
	if s.IO == nil {
		return
	}
	for _, list := range [...]struct {
		key                  string
		read, write, discard func(*cgroup.DeviceIO) *uint64
		unit                 string
		extra                string
	}{
		{key: "ioServiceBytesRecursive", unit: "bytes",
			read: func(d *cgroup.DeviceIO) *uint64 { return d.ReadBytes }, write: func(d *cgroup.DeviceIO) *uint64 { return d.WriteBytes },
			discard: func(d *cgroup.DeviceIO) *uint64 { return d.DiscardBytes }},
		{key: "ioServicedRecursive", unit: "ios",
			read: func(d *cgroup.DeviceIO) *uint64 { return d.Reads }, write: func(d *cgroup.DeviceIO) *uint64 { return d.Writes },
			discard: func(d *cgroup.DeviceIO) *uint64 { return d.Discards }},
		{key: "ioQueueRecursive", extra: "io_queued"},
		{key: "ioServiceTimeRecursive", extra: "io_service_time"},
		{key: "ioWaitTimeRecursive", extra: "io_wait_time"},
		{key: "ioMergedRecursive", extra: "io_merged"},
	} {
		var entries []blkioEntry
		for i := range s.IO.Devices {
			d := &s.IO.Devices[i]
			add := func(operation string, n *uint64) {
				if n != nil {
					entries = append(entries, blkioEntry{d.Major, d.Minor, operation, *n})
				}
			}
			if list.extra != "" {
				for _, operation := range [...]string{"Read", "Write", "Sync", "Async", "Discard", "Total"} {
					if n, ok := d.Extra[list.extra+"."+operation]; ok {
						add(operation, &n)
					}
				}
				continue
			}
			read, write, discard := list.read(d), list.write(d), list.discard(d)
			add("Read", read)
			add("Write", write)
			sync, v1 := d.Extra["sync_"+list.unit]
			if v1 {
				async := d.Extra["async_"+list.unit]
				add("Sync", &sync)
				add("Async", &async)
			}
			add("Discard", discard)
			if v1 {
				total := value(read) + value(write) + value(discard)
				add("Total", &total)
			}
		}
		writeBlkio(w, list.key, entries)
	}
	pressure(w, s.IO.Pressure)
}

type blkioEntry struct {
	major, minor uint32
	operation    string
	value        uint64
}

func writeBlkio(w *json.Writer, key string, entries []blkioEntry) {
	if len(entries) == 0 {
		return
	}
	w.Key(key).Array()
	for _, e := range entries {
		w.Object()
		w.Key("major").Uint(uint64(e.major))
		w.Key("minor").Uint(uint64(e.minor))
		w.Key("op").String(e.operation)
		w.Key("value").Uint(e.value)
		w.End()
	}
	w.End()
}

// write uses the names that clients know, which are those of a Go structure.
func (i *InterfaceStats) write(w *json.Writer) {
	w.Object()
	w.Key("Name").String(i.Name)
	for _, f := range [...]struct {
		key   string
		value uint64
	}{
		{"RxBytes", i.RxBytes}, {"RxPackets", i.RxPackets}, {"RxErrors", i.RxErrors}, {"RxDropped", i.RxDropped},
		{"TxBytes", i.TxBytes}, {"TxPackets", i.TxPackets}, {"TxErrors", i.TxErrors}, {"TxDropped", i.TxDropped},
	} {
		w.Key(f.key).Uint(f.value)
	}
	w.End()
}
