package cgroup

import (
	"bytes"
	"maps"
	"os"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/internal/ptr"
)

// PidsStats is the number of tasks: processes and their threads. On version 2 without the
// controller it is that of processes.
type PidsStats struct {
	Counter
}

func readPids(r *statsReader, s *Stats, _ Part) {
	n := r.g.node("pids")
	p := PidsStats{Counter{Usage: r.number(n, "pids.current"), Limit: r.number(n, "pids.max")}}
	if p.Usage == nil && !r.totals && r.err == nil && r.g.unified() != nil {
		if pids, err := r.g.AllProcs(); err == nil {
			p.Usage = ptr.To(uint64(len(pids)))
			r.count++
		}
	}
	if !r.totals {
		p.Peak = r.number(n, "pids.peak")
		if text, ok := r.text(n, "pids.events"); ok {
			p.Failures = valueOf(text, "max")
		}
	}
	if p.orNil() != nil {
		s.Pids = &p
	}
}

// valueOf finds one key of "KEY VALUE" lines.
func valueOf(text []byte, key string) *uint64 {
	for name, value := range flatKeyed(text) {
		if name == key {
			return ptr.To(value)
		}
	}
	return nil
}

// HugetlbStats is huge pages of one size, in bytes.
type HugetlbStats struct {
	Counter
	Reserved *Counter       `json:"reserved,omitempty"` // what was promised, before it is used
	NUMA     map[int]uint64 `json:"numa,omitempty"`     // use by node
}

func readHugetlb(r *statsReader, s *Stats, want Part) {
	n := r.g.node("hugetlb")
	if n == nil {
		return
	}
	for _, size := range r.g.host.hugePageSizes() {
		prefix := "hugetlb." + size + "."
		var h HugetlbStats
		if n.Version == 1 {
			h.Counter = r.counterV1(n, prefix)
			h.Reserved = r.counterV1(n, prefix+"rsvd.").orNil()
		} else {
			h.Usage = r.number(n, prefix+"current")
			h.Limit = r.number(n, prefix+"max")
			if text, ok := r.text(n, prefix+"events"); ok {
				h.Failures = valueOf(text, "max")
			}
			h.Reserved = Counter{Usage: r.number(n, prefix+"rsvd.current"), Limit: r.number(n, prefix+"rsvd.max")}.orNil()
		}
		if want&NUMA != 0 {
			if text, ok := r.text(n, prefix+"numa_stat"); ok {
				h.NUMA = parseNUMA(text)["total"]
			}
		}
		if h.orNil() == nil && h.Reserved == nil {
			continue
		}
		if s.Hugetlb == nil {
			s.Hugetlb = map[string]HugetlbStats{}
		}
		s.Hugetlb[size] = h
	}
}

// hugePageSizes lists the sizes that this kernel has, as the files of the
// hugetlb controller name them.
func (h *Host) hugePageSizes() []string {
	h.hugeOnce.Do(func() {
		entries, err := os.ReadDir(h.root + "/sys/kernel/mm/hugepages")
		if err != nil {
			return
		}
		for _, entry := range entries {
			if size, ok := hugePageSize(entry.Name()); ok {
				h.huge = append(h.huge, size)
			}
		}
	})
	return h.huge
}

// hugePageSize turns "hugepages-2048kB" into "2MB" (mem_fmt in hugetlb_cgroup.c).
func hugePageSize(name string) (string, bool) {
	digits, ok := strings.CutPrefix(name, "hugepages-")
	if !ok {
		return "", false
	}
	if digits, ok = strings.CutSuffix(digits, "kB"); !ok {
		return "", false
	}
	kib, err := strconv.ParseUint(digits, 10, 40)
	switch {
	case err != nil:
		return "", false
	case kib >= 1<<20:
		return strconv.FormatUint(kib>>20, 10) + "GB", true
	case kib >= 1<<10:
		return strconv.FormatUint(kib>>10, 10) + "MB", true
	}
	return strconv.FormatUint(kib, 10) + "KB", true
}

// RDMAStats is the use of one RDMA device.
type RDMAStats struct {
	Handles Counter `json:"handles"`
	Objects Counter `json:"objects"`
}

func readRDMA(r *statsReader, s *Stats, _ Part) {
	n := r.g.node("rdma")
	table := map[string]RDMAStats{}
	for file, set := range nestedFiles("rdma") {
		text, ok := r.text(n, file)
		if !ok {
			continue
		}
		nestedKeyed(text, func(name, key string, value *uint64) {
			d := table[name]
			switch key {
			case "hca_handle":
				set(&d.Handles, value)
			case "hca_object":
				set(&d.Objects, value)
			}
			table[name] = d
		})
	}
	if len(table) > 0 {
		s.RDMA = table
	}
}

// nestedFiles lists the three files of a controller with named resources, and
// where their values go.
func nestedFiles(controller string) map[string]func(*Counter, *uint64) {
	return map[string]func(*Counter, *uint64){
		controller + ".current": func(c *Counter, v *uint64) { c.Usage = v },
		controller + ".max":     func(c *Counter, v *uint64) { c.Limit = v },
		controller + ".peak":    func(c *Counter, v *uint64) { c.Peak = v },
	}
}

// nestedKeyed takes "NAME KEY=VALUE…" lines apart.
func nestedKeyed(text []byte, take func(name, key string, value *uint64)) {
	for line := range bytes.Lines(text) {
		name, rest, _ := bytes.Cut(bytes.TrimSpace(line), []byte{' '})
		for field := range bytes.FieldsSeq(rest) {
			key, number, _ := bytes.Cut(field, []byte{'='})
			if value := parseAmount(number); value != nil && len(name) > 0 {
				take(string(name), string(key), value)
			}
		}
	}
}

func readMisc(r *statsReader, s *Stats, _ Part) {
	n := r.g.node("misc")
	s.Misc = readNamed(r, n, "misc")
	if text, ok := r.text(n, "misc.events"); ok && s.Misc != nil {
		for key, value := range flatKeyed(text) {
			if name, isMax := strings.CutSuffix(key, ".max"); isMax {
				c := s.Misc[name]
				c.Failures = ptr.To(value)
				s.Misc[name] = c
			}
		}
	}
}

func readDMem(r *statsReader, s *Stats, _ Part) {
	s.DMem = readNamed(r, r.g.node("dmem"), "dmem")
}

// readNamed reads the "NAME VALUE" files of a controller.
func readNamed(r *statsReader, n *node, controller string) map[string]Counter {
	table := map[string]Counter{}
	for file, set := range nestedFiles(controller) {
		text, ok := r.text(n, file)
		if !ok {
			continue
		}
		for line := range bytes.Lines(text) {
			name, number, _ := bytes.Cut(bytes.TrimSpace(line), []byte{' '})
			if value := parseAmount(number); value != nil && len(name) > 0 {
				c := table[string(name)]
				set(&c, value)
				table[string(name)] = c
			}
		}
	}
	if len(table) == 0 {
		return nil
	}
	return table
}

// TreeStats is what version 2 says of the groups below.
type TreeStats struct {
	Descendants      *uint64 `json:"descendants,omitempty"`
	DyingDescendants *uint64 `json:"dyingDescendants,omitempty"` // removed, and still holding memory
	Frozen           *uint64 `json:"frozen,omitempty"`           // nanoseconds this group stood frozen (Linux 6.18)
	// Stat is cgroup.stat as it is.
	Stat map[string]uint64 `json:"stat,omitempty"`
}

func readTree(r *statsReader, s *Stats, _ Part) {
	u := r.g.unified()
	text, ok := r.text(u, "cgroup.stat")
	if !ok {
		return
	}
	t := &TreeStats{Descendants: valueOf(text, "nr_descendants"), DyingDescendants: valueOf(text, "nr_dying_descendants")}
	t.Stat = maps.Collect(flatKeyed(text))
	if text, ok := r.text(u, "cgroup.stat.local"); ok {
		if usec := valueOf(text, "frozen_usec"); usec != nil {
			t.Frozen = ptr.To(*usec * 1000)
		}
	}
	s.Tree = t
}
