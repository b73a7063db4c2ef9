package metrics

import (
	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// UnlimitedV1 is what version 1 shows for no limit of memory: the greatest page
// count, with pages of 4 KiB. Clients compare with it.
const UnlimitedV1 = 0x7ffffffffffff000

// V1 is containerd's message of a cgroup of version 1.
func V1(s *cgroup.Stats) *wire.V1Metrics {
	m := &wire.V1Metrics{Rdma: rdma(s.RDMA)}
	if c := s.CPU; c != nil {
		m.CPU = &wire.V1CPUStat{
			Usage: &wire.V1CPUUsage{Total: or0(c.Usage), Kernel: or0(c.System), User: or0(c.User), PerCPU: c.PerCPU},
			Throttling: &wire.V1Throttle{
				Periods: or0(c.Periods), ThrottledPeriods: or0(c.ThrottledPeriods), ThrottledTime: or0(c.Throttled),
			},
		}
	}
	if s.Memory != nil {
		m.Memory = v1Memory(s.Memory)
		m.MemoryOOMControl = v1OOM(s.Memory)
	}
	if p := s.Pids; p != nil {
		m.Pids = &wire.PidsStat{Current: or0(p.Usage)}
		if limit := or0(p.Limit); limit != cgroup.NoLimit {
			m.Pids.Limit = limit
		}
	}
	if s.IO != nil {
		m.Blkio = v1IO(s.IO)
	}
	for _, size := range sortedKeys(s.Hugetlb) {
		h := s.Hugetlb[size]
		m.Hugetlb = append(m.Hugetlb, &wire.V1HugetlbStat{
			Usage: or0(h.Usage), Max: or0(h.Peak), Failcnt: or0(h.Failures), Pagesize: size,
		})
	}
	return m
}

func v1Entry(c *cgroup.Counter) *wire.V1MemoryEntry {
	if c == nil {
		return nil
	}
	e := &wire.V1MemoryEntry{Limit: or0(c.Limit), Usage: or0(c.Usage), Max: or0(c.Peak), Failcnt: or0(c.Failures)}
	if e.Limit == cgroup.NoLimit {
		e.Limit = UnlimitedV1
	}
	return e
}

func v1Memory(s *cgroup.MemoryStats) *wire.V1MemoryStat {
	m := &wire.V1MemoryStat{
		Usage: v1Entry(&s.Counter), Swap: v1Entry(s.MemoryAndSwap), Kernel: v1Entry(s.Kernel), KernelTCP: v1Entry(s.KernelTCP),
	}
	for key, value := range s.Stat {
		if p := v1MemoryField(m, key); p != nil {
			*p = value
		}
	}
	return m
}

// v1MemoryField is the field that a line of version 1's memory.stat fills.
func v1MemoryField(m *wire.V1MemoryStat, key string) *uint64 {
	switch key {
	case "cache":
		return &m.Cache
	case "rss":
		return &m.RSS
	case "rss_huge":
		return &m.RSSHuge
	case "mapped_file":
		return &m.MappedFile
	case "dirty":
		return &m.Dirty
	case "writeback":
		return &m.Writeback
	case "pgpgin":
		return &m.PgPgIn
	case "pgpgout":
		return &m.PgPgOut
	case "pgfault":
		return &m.PgFault
	case "pgmajfault":
		return &m.PgMajFault
	case "inactive_anon":
		return &m.InactiveAnon
	case "active_anon":
		return &m.ActiveAnon
	case "inactive_file":
		return &m.InactiveFile
	case "active_file":
		return &m.ActiveFile
	case "unevictable":
		return &m.Unevictable
	case "hierarchical_memory_limit":
		return &m.HierarchicalMemoryLimit
	case "hierarchical_memsw_limit":
		return &m.HierarchicalSwapLimit
	case "total_cache":
		return &m.TotalCache
	case "total_rss":
		return &m.TotalRSS
	case "total_rss_huge":
		return &m.TotalRSSHuge
	case "total_mapped_file":
		return &m.TotalMappedFile
	case "total_dirty":
		return &m.TotalDirty
	case "total_writeback":
		return &m.TotalWriteback
	case "total_pgpgin":
		return &m.TotalPgPgIn
	case "total_pgpgout":
		return &m.TotalPgPgOut
	case "total_pgfault":
		return &m.TotalPgFault
	case "total_pgmajfault":
		return &m.TotalPgMajFault
	case "total_inactive_anon":
		return &m.TotalInactiveAnon
	case "total_active_anon":
		return &m.TotalActiveAnon
	case "total_inactive_file":
		return &m.TotalInactiveFile
	case "total_active_file":
		return &m.TotalActiveFile
	case "total_unevictable":
		return &m.TotalUnevictable
	}
	return nil
}

func v1OOM(s *cgroup.MemoryStats) *wire.V1MemoryOomControl {
	m := &wire.V1MemoryOomControl{}
	if s.OOMKillDisabled != nil && *s.OOMKillDisabled {
		m.OOMKillDisable = 1
	}
	if s.UnderOOM != nil && *s.UnderOOM {
		m.UnderOOM = 1
	}
	if s.Events != nil {
		m.OOMKill = or0(s.Events.OOMKill)
	}
	return m
}

func v1IO(s *cgroup.IOStats) *wire.V1BlkIOStat {
	m := &wire.V1BlkIOStat{}
	for _, d := range s.Devices {
		add := func(list *[]*wire.V1BlkIOEntry, op string, value *uint64) {
			if value != nil {
				*list = append(*list, &wire.V1BlkIOEntry{Op: op, Major: uint64(d.Major), Minor: uint64(d.Minor), Value: *value})
			}
		}
		add(&m.IOServiceBytesRecursive, "Read", d.ReadBytes)
		add(&m.IOServiceBytesRecursive, "Write", d.WriteBytes)
		add(&m.IOServiceBytesRecursive, "Discard", d.DiscardBytes)
		add(&m.IOServicedRecursive, "Read", d.Reads)
		add(&m.IOServicedRecursive, "Write", d.Writes)
		add(&m.IOServicedRecursive, "Discard", d.Discards)
	}
	return m
}
