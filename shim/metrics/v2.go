package metrics

import (
	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// V2 is containerd's message of a cgroup of version 2.
func V2(s *cgroup.Stats) *wire.V2Metrics {
	m := &wire.V2Metrics{Rdma: rdma(s.RDMA)}
	if c := s.CPU; c != nil {
		const usec = 1000
		m.CPU = &wire.V2CPUStat{
			UsageUsec: or0(c.Usage) / usec, UserUsec: or0(c.User) / usec, SystemUsec: or0(c.System) / usec,
			NrPeriods: or0(c.Periods), NrThrottled: or0(c.ThrottledPeriods), ThrottledUsec: or0(c.Throttled) / usec,
			NrBursts: or0(c.Bursts), BurstUsec: or0(c.Burst) / usec, PSI: v2Pressure(c.Pressure),
		}
	}
	if s.Memory != nil {
		m.Memory = v2Memory(s.Memory)
		if e := s.Memory.Events; e != nil {
			m.MemoryEvents = &wire.V2MemoryEvents{
				Low: or0(e.Low), High: or0(e.High), Max: or0(e.Max), OOM: or0(e.OOM),
				OOMKill: or0(e.OOMKill), OOMGroupKill: or0(e.OOMGroupKill),
			}
		}
	}
	if p := s.Pids; p != nil {
		m.Pids = &wire.PidsStat{Current: or0(p.Usage), Limit: or0(p.Limit)}
	}
	if s.IO != nil {
		m.IO = &wire.V2IOStat{PSI: v2Pressure(s.IO.Pressure)}
		for _, d := range s.IO.Devices {
			m.IO.Usage = append(m.IO.Usage, &wire.V2IOEntry{
				Major: uint64(d.Major), Minor: uint64(d.Minor), Rbytes: or0(d.ReadBytes), Wbytes: or0(d.WriteBytes),
				Rios: or0(d.Reads), Wios: or0(d.Writes),
			})
		}
	}
	for _, size := range sortedKeys(s.Hugetlb) {
		h := s.Hugetlb[size]
		m.Hugetlb = append(m.Hugetlb, &wire.V2HugeTlbStat{
			Current: or0(h.Usage), Max: or0(h.Limit), Pagesize: size, Failcnt: or0(h.Failures),
		})
	}
	return m
}

func v2Pressure(p *cgroup.Pressure) *wire.V2PSIStats {
	if p == nil {
		return nil
	}
	line := func(l *cgroup.PressureLine) *wire.V2PSIData {
		if l == nil {
			return nil
		}
		return &wire.V2PSIData{Avg10: l.Avg10, Avg60: l.Avg60, Avg300: l.Avg300, Total: l.Total}
	}
	return &wire.V2PSIStats{Some: line(p.Some), Full: line(p.Full)}
}

func v2Memory(s *cgroup.MemoryStats) *wire.V2MemoryStat {
	m := &wire.V2MemoryStat{
		Usage: or0(s.Usage), UsageLimit: or0(s.Limit), MaxUsage: or0(s.Peak), PSI: v2Pressure(s.Pressure),
	}
	if s.Swap != nil {
		m.SwapUsage, m.SwapLimit, m.SwapMaxUsage = or0(s.Swap.Usage), or0(s.Swap.Limit), or0(s.Swap.Peak)
	}
	for key, value := range s.Stat {
		if p := v2MemoryField(m, key); p != nil {
			*p += value
		}
	}
	return m
}

// v2MemoryField is the field that a line of version 2's memory.stat fills.
func v2MemoryField(m *wire.V2MemoryStat, key string) *uint64 {
	switch key {
	case "anon":
		return &m.Anon
	case "file":
		return &m.File
	case "kernel_stack":
		return &m.KernelStack
	case "slab":
		return &m.Slab
	case "sock":
		return &m.Sock
	case "shmem":
		return &m.Shmem
	case "file_mapped":
		return &m.FileMapped
	case "file_dirty":
		return &m.FileDirty
	case "file_writeback":
		return &m.FileWriteback
	case "anon_thp":
		return &m.AnonThp
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
	case "slab_reclaimable":
		return &m.SlabReclaimable
	case "slab_unreclaimable":
		return &m.SlabUnreclaimable
	case "pgfault":
		return &m.Pgfault
	case "pgmajfault":
		return &m.Pgmajfault
	case "workingset_refault", "workingset_refault_anon", "workingset_refault_file": // in two since Linux 5.9
		return &m.WorkingsetRefault
	case "workingset_activate", "workingset_activate_anon", "workingset_activate_file":
		return &m.WorkingsetActivate
	case "workingset_nodereclaim":
		return &m.WorkingsetNodereclaim
	case "pgrefill":
		return &m.Pgrefill
	case "pgscan":
		return &m.Pgscan
	case "pgsteal":
		return &m.Pgsteal
	case "pgactivate":
		return &m.Pgactivate
	case "pgdeactivate":
		return &m.Pgdeactivate
	case "pglazyfree":
		return &m.Pglazyfree
	case "pglazyfreed":
		return &m.Pglazyfreed
	case "thp_fault_alloc":
		return &m.ThpFaultAlloc
	case "thp_collapse_alloc":
		return &m.ThpCollapseAlloc
	}
	return nil
}
