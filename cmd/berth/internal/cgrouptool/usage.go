package cgrouptool

import (
	"os"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/internal/ptr"
)

// Usage is what a cgroup and those below it use. What the host does not tell is nil.
type Usage struct {
	CPU                     *uint64 // nanoseconds
	Memory, MemoryLimit     *uint64 // bytes; the limit is nil where there is none
	Tasks, TasksLimit       *uint64
	ReadBytes, WrittenBytes *uint64
	// Shares of the last ten seconds in which some task waited, in percent.
	CPUPressure, MemoryPressure, IOPressure *float64
}

// usageAt reads what the group at a path uses, where it is in hierarchies that count something.
func (t *Tools) usageAt(path string, homes []*cgroup.Hierarchy, parts cgroup.Part) Usage {
	keys := make([]string, 0, len(homes))
	for _, h := range homes {
		if counts(h, parts, t.Host) {
			keys = append(keys, h.String())
		}
	}
	if len(keys) == 0 {
		return Usage{}
	}
	g, err := t.Host.Open(path, cgroup.Only(keys...))
	if err != nil {
		return Usage{}
	}
	defer g.Close()
	return t.usage(g, parts)
}

// counters are the controllers of version 1 that parts of the usage are read from.
var counters = map[cgroup.Part]string{cgroup.CPU: "cpuacct", cgroup.Memory: "memory", cgroup.Pids: "pids", cgroup.IO: "blkio"}

// counts says whether a hierarchy has files for a part of the usage. Version 2 has those of the
// pressure, and of the rest what no hierarchy of version 1 has.
func counts(h *cgroup.Hierarchy, parts cgroup.Part, host *cgroup.Host) bool {
	if h.Version == 2 && parts&cgroup.Pressures != 0 {
		return true
	}
	for part, controller := range counters {
		if parts&part == 0 {
			continue
		}
		home := host.Controller(controller)
		if h == home || h.Version == 2 && (home == nil || home.Version == 2) {
			return true
		}
	}
	return false
}

// usage reads what a group uses. A group that is in hierarchies without
// counters, or that has gone meanwhile, has nothing to tell.
func (t *Tools) usage(g *cgroup.Group, parts cgroup.Part) (u Usage) {
	if stats, err := g.Stats(parts, cgroup.Totals); err == nil {
		u.take(stats)
	}
	if g.Path() == "/" {
		t.completeRoot(&u)
	}
	return u
}

func (u *Usage) take(s *cgroup.Stats) {
	if s.CPU != nil {
		u.CPU = s.CPU.Usage
		u.CPUPressure = some10(s.CPU.Pressure)
	}
	if s.Memory != nil {
		u.Memory, u.MemoryLimit = s.Memory.Usage, limitOrNil(s.Memory.Limit)
		u.MemoryPressure = some10(s.Memory.Pressure)
	}
	if s.Pids != nil {
		u.Tasks, u.TasksLimit = s.Pids.Usage, limitOrNil(s.Pids.Limit)
	}
	if s.IO == nil {
		return
	}
	u.IOPressure = some10(s.IO.Pressure)
	if s.IO.Devices != nil {
		u.ReadBytes, u.WrittenBytes = new(uint64), new(uint64)
	}
	for _, d := range s.IO.Devices {
		if d.ReadBytes != nil {
			*u.ReadBytes += *d.ReadBytes
		}
		if d.WriteBytes != nil {
			*u.WrittenBytes += *d.WriteBytes
		}
	}
}

func some10(p *cgroup.Pressure) *float64 {
	if p == nil || p.Some == nil {
		return nil
	}
	return &p.Some.Avg10
}

func limitOrNil(limit *uint64) *uint64 {
	if limit == nil || *limit == cgroup.NoLimit {
		return nil
	}
	return limit
}

// completeRoot takes from /proc what the root cgroup of version 2 has no files
// for, because the machine's own counters say the same.
func (t *Tools) completeRoot(u *Usage) {
	if total, available, ok := t.memory(); ok && u.Memory == nil {
		u.Memory, u.MemoryLimit = ptr.To(total-available), &total
	}
	if text, err := os.ReadFile(t.root + "/proc/loadavg"); err == nil && u.Tasks == nil {
		// "0.00 0.01 0.05 1/234 5678": 234 threads.
		if f := strings.Fields(string(text)); len(f) > 3 {
			_, all, _ := strings.Cut(f[3], "/")
			if n, err := strconv.ParseUint(all, 10, 64); err == nil {
				u.Tasks = &n
			}
		}
	}
	for name, to := range map[string]**float64{"cpu": &u.CPUPressure, "memory": &u.MemoryPressure, "io": &u.IOPressure} {
		if *to != nil {
			continue
		}
		if text, err := os.ReadFile(t.root + "/proc/pressure/" + name); err == nil {
			_, rest, _ := strings.Cut(string(text), "some avg10=")
			value, _, _ := strings.Cut(rest, " ")
			if share, err := strconv.ParseFloat(value, 64); err == nil {
				*to = &share
			}
		}
	}
}

// memory is the machine's, by /proc/meminfo, in bytes.
func (t *Tools) memory() (total, available uint64, ok bool) {
	text, err := os.ReadFile(t.root + "/proc/meminfo")
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if len(f) == 0 {
			continue
		}
		n, err := strconv.ParseUint(f[0], 10, 54)
		switch {
		case err != nil:
		case name == "MemTotal":
			total = n << 10
		case name == "MemAvailable":
			available = n << 10
		}
	}
	return total, available, total > 0 && available <= total
}
