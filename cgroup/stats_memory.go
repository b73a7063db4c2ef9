package cgroup

import (
	"bytes"
	"maps"

	"github.com/berth-runtime/berth/internal/ptr"
)

// MemoryStats is memory, in bytes.
type MemoryStats struct {
	Counter
	// Swap is swap space alone; MemoryAndSwap is version 1's sum.
	Swap          *Counter `json:"swap,omitempty"`
	MemoryAndSwap *Counter `json:"memoryAndSwap,omitempty"`
	// Kernel and KernelTCP are parts of the memory; limits on them are version 1's.
	Kernel    *Counter `json:"kernel,omitempty"`
	KernelTCP *Counter `json:"kernelTCP,omitempty"`
	Zswap     *Counter `json:"zswap,omitempty"`

	Stat        map[string]uint64 `json:"stat,omitempty"` // memory.stat as it is
	Events      *MemoryEvents     `json:"events,omitempty"`
	EventsLocal *MemoryEvents     `json:"eventsLocal,omitempty"` // of this group alone, not of those below
	SwapEvents  *SwapEvents       `json:"swapEvents,omitempty"`

	// Version 1's OOM killer can be switched off; then tasks wait (UnderOOM).
	OOMKillDisabled *bool `json:"oomKillDisabled,omitempty"`
	UnderOOM        *bool `json:"underOOM,omitempty"`

	Pressure *Pressure `json:"pressure,omitempty"`
	// NUMA is memory.numa_stat: what, on which node, how much; in bytes on
	// version 2, in pages on version 1.
	NUMA map[string]map[int]uint64 `json:"numa,omitempty"`
}

// MemoryEvents counts what memory limits did.
type MemoryEvents struct {
	Low           *uint64 `json:"low,omitempty"`  // reclaimed below the protection
	High          *uint64 `json:"high,omitempty"` // slowed down for being above memory.high
	Max           *uint64 `json:"max,omitempty"`  // about to exceed the limit
	OOM           *uint64 `json:"oom,omitempty"`
	OOMKill       *uint64 `json:"oomKill,omitempty"`
	OOMGroupKill  *uint64 `json:"oomGroupKill,omitempty"`
	SockThrottled *uint64 `json:"sockThrottled,omitempty"`
}

// SwapEvents counts what swap limits did.
type SwapEvents struct {
	High *uint64 `json:"high,omitempty"`
	Max  *uint64 `json:"max,omitempty"`
	Fail *uint64 `json:"fail,omitempty"`
}

// LimitHit reports whether a limit of this group itself was hit, and not only one above it.
func (m *MemoryStats) LimitHit() bool {
	if m.Events != nil && m.Events.OOM != nil { // version 2
		return *m.Events.OOM > 0
	}
	// Version 1 counts each charge that failed, at the limit that it failed at. memory and swap
	// together are charged first, so where both limits are the same (no swap) only theirs counts.
	failed := func(c *Counter) bool { return c != nil && c.Failures != nil && *c.Failures > 0 }
	return failed(&m.Counter) || failed(m.MemoryAndSwap)
}

// WorkingSet is the use without the files that were not touched lately, which
// the kernel gives up first; nil if it is not known.
func (m *MemoryStats) WorkingSet() *uint64 {
	inactive, ok := m.Stat["total_inactive_file"] // version 1, with the groups below
	if !ok {
		inactive, ok = m.Stat["inactive_file"]
	}
	if !ok || m.Usage == nil {
		return nil
	}
	return ptr.To(*m.Usage - min(inactive, *m.Usage))
}

func readMemory(r *statsReader, s *Stats, want Part) {
	n, u := r.g.node("memory"), r.g.unified()
	m := &MemoryStats{}
	switch {
	case n == nil:
	case r.totals && n.Version == 2:
		m.Usage, m.Limit = r.number(n, "memory.current"), r.number(n, "memory.max")
	case r.totals:
		m.Usage, m.Limit = r.number(n, "memory.usage_in_bytes"), r.number(n, "memory.limit_in_bytes")
	case n.Version == 2:
		readMemoryV2(r, n, m)
	default:
		readMemoryV1(r, n, m)
	}
	if want&NUMA != 0 {
		if text, ok := r.text(n, "memory.numa_stat"); ok {
			m.NUMA = parseNUMA(text)
		}
	}
	m.Pressure = r.pressure(u, "memory.pressure")
	if n != nil || m.Pressure != nil {
		s.Memory = m
	}
}

func readMemoryV2(r *statsReader, n *node, m *MemoryStats) {
	m.Usage = r.number(n, "memory.current")
	m.Peak = r.number(n, "memory.peak")
	m.Limit = r.number(n, "memory.max")
	m.Swap = Counter{
		Usage: r.number(n, "memory.swap.current"),
		Peak:  r.number(n, "memory.swap.peak"),
		Limit: r.number(n, "memory.swap.max"),
	}.orNil()
	m.Zswap = Counter{
		Usage: r.number(n, "memory.zswap.current"),
		Limit: r.number(n, "memory.zswap.max"),
	}.orNil()
	if text, ok := r.text(n, "memory.stat"); ok {
		m.Stat = maps.Collect(flatKeyed(text))
	}
	if kernel, ok := m.Stat["kernel"]; ok {
		m.Kernel = &Counter{Usage: &kernel}
	}
	if text, ok := r.text(n, "memory.events"); ok {
		m.Events = parseMemoryEvents(text)
		m.Failures = m.Events.Max
	}
	if text, ok := r.text(n, "memory.events.local"); ok {
		m.EventsLocal = parseMemoryEvents(text)
	}
	if text, ok := r.text(n, "memory.swap.events"); ok {
		m.SwapEvents = &SwapEvents{}
		for key, value := range flatKeyed(text) {
			switch key {
			case "high":
				m.SwapEvents.High = ptr.To(value)
			case "max":
				m.SwapEvents.Max = ptr.To(value)
			case "fail":
				m.SwapEvents.Fail = ptr.To(value)
			}
		}
	}
}

func readMemoryV1(r *statsReader, n *node, m *MemoryStats) {
	m.Counter = r.counterV1(n, "memory.")
	m.MemoryAndSwap = r.counterV1(n, "memory.memsw.").orNil()
	m.Kernel = r.counterV1(n, "memory.kmem.").orNil()
	m.KernelTCP = r.counterV1(n, "memory.kmem.tcp.").orNil()
	if text, ok := r.text(n, "memory.stat"); ok {
		m.Stat = maps.Collect(flatKeyed(text))
	}
	if swap, ok := m.Stat["total_swap"]; ok {
		m.Swap = &Counter{Usage: &swap}
	}
	if text, ok := r.text(n, "memory.oom_control"); ok {
		for key, value := range flatKeyed(text) {
			switch key {
			case "oom_kill_disable":
				m.OOMKillDisabled = ptr.To(value != 0)
			case "under_oom":
				m.UnderOOM = ptr.To(value != 0)
			case "oom_kill":
				m.Events = &MemoryEvents{OOMKill: ptr.To(value)}
			}
		}
	}
}

// counterV1 reads the four files that version 1 has for each kind of memory.
func (r *statsReader) counterV1(n *node, prefix string) Counter {
	c := Counter{Usage: r.number(n, prefix+"usage_in_bytes")}
	if c.Usage == nil {
		return c // the kernel was built without that kind
	}
	c.Peak = r.number(n, prefix+"max_usage_in_bytes")
	c.Limit = r.number(n, prefix+"limit_in_bytes")
	c.Failures = r.number(n, prefix+"failcnt")
	return c
}

func parseMemoryEvents(text []byte) *MemoryEvents {
	e := &MemoryEvents{}
	for key, value := range flatKeyed(text) {
		switch key {
		case "low":
			e.Low = ptr.To(value)
		case "high":
			e.High = ptr.To(value)
		case "max":
			e.Max = ptr.To(value)
		case "oom":
			e.OOM = ptr.To(value)
		case "oom_kill":
			e.OOMKill = ptr.To(value)
		case "oom_group_kill":
			e.OOMGroupKill = ptr.To(value)
		case "sock_throttled":
			e.SockThrottled = ptr.To(value)
		}
	}
	return e
}

// parseNUMA reads "anon N0=1 N1=2" (version 2) and "anon=3 N0=1 N1=2" (version 1) lines.
func parseNUMA(text []byte) map[string]map[int]uint64 {
	table := map[string]map[int]uint64{}
	for line := range bytes.Lines(text) {
		name, rest, _ := bytes.Cut(bytes.TrimSpace(line), []byte{' '})
		name, _, _ = bytes.Cut(name, []byte{'='})
		nodes := map[int]uint64{}
		for field := range bytes.FieldsSeq(rest) {
			key, value, _ := bytes.Cut(field, []byte{'='})
			if len(key) < 2 || key[0] != 'N' {
				continue
			}
			number, ok := parseUint(key[1:])
			amount, ok2 := parseUint(value)
			if ok && ok2 && number < 1<<16 {
				nodes[int(number)] = amount
			}
		}
		if len(name) > 0 && len(nodes) > 0 {
			table[string(name)] = nodes
		}
	}
	return table
}
