package view

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/engine/container"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Stats is what is counted of a container.
type Stats struct {
	*cgroup.Stats
	// CpusetFlags are the switches and numbers of a cgroup v1 cpuset, by the
	// names of their files.
	CpusetFlags map[string]int64
	// Interfaces are those of the container's own network namespace.
	Interfaces []InterfaceStats
	Rdt        *RdtStats
}

// InterfaceStats is what one network interface has carried.
type InterfaceStats struct {
	Name                                    string
	RxBytes, RxPackets, RxErrors, RxDropped uint64
	TxBytes, TxPackets, TxErrors, TxDropped uint64
}

// StatsOf reads the counters of a container that has a process.
func StatsOf(c *container.Container) (*Stats, error) {
	if err := c.WantProcess("read the counters of"); err != nil {
		return nil, err
	}
	s, err := c.Config()
	if err != nil {
		return nil, err
	}
	return count(c, s)
}

func count(c *container.Container, s *specs.Spec) (*Stats, error) {
	stats := &Stats{Stats: &cgroup.Stats{}}
	g, err := c.OpenGroup()
	if err != nil {
		return nil, err
	}
	if g != nil { // without a cgroup of its own nothing is counted of it but what its network has carried
		defer g.Close()
		stats.Stats, err = g.Stats(cgroup.CPU, cgroup.Cpuset, cgroup.Memory, cgroup.IO, cgroup.Pids, cgroup.Hugetlb)
		if h := g.Host().Controller("cpuset"); h != nil && h.Version == 1 {
			stats.CpusetFlags = cpusetFlags(g.Directory("cpuset"))
		}
		if err != nil {
			return nil, err
		}
	}
	if ownNetwork(s) {
		if stats.Interfaces, err = interfaces(c); err != nil {
			return nil, err
		}
	}
	if s.Linux != nil && s.Linux.IntelRdt != nil {
		if dir, err := c.ResctrlGroup(s.Linux.IntelRdt); err == nil {
			stats.Rdt = readRdt(dir)
		}
	}
	return stats, nil
}

// cpusetFlags reads the files that only version 1 has.
func cpusetFlags(dir string) map[string]int64 {
	flags := map[string]int64{}
	for _, name := range cpusetFlagNames {
		text, err := os.ReadFile(filepath.Join(dir, "cpuset."+name))
		if err != nil {
			continue
		}
		// sched_relax_domain_level is -1 by default.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			flags[name] = n
		}
	}
	return flags
}

var cpusetFlagNames = [...]string{"cpu_exclusive", "mem_hardwall", "mem_exclusive", "memory_migrate", "memory_spread_page", "memory_spread_slab",
	"memory_pressure", "sched_load_balance", "sched_relax_domain_level"}

// ownNetwork says whether the container has a network namespace that is not the
// runtime's: the interfaces of that one are not the container's to be counted.
func ownNetwork(s *specs.Spec) bool {
	if s.Linux == nil {
		return false
	}
	for _, n := range s.Linux.Namespaces {
		if n.Type == specs.NetworkNamespace {
			return true
		}
	}
	return false
}

// interfaces reads the counters of the container's network namespace by way of
// its first process, which spares us from entering it.
func interfaces(c *container.Container) ([]InterfaceStats, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(c.Pid) + "/net/dev")
	if err == nil && !c.Alive() {
		return nil, container.ErrNotRunning
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, container.ErrNotRunning
	}
	if err != nil {
		return nil, fmt.Errorf("read the network counters of container %s: %w", c.ID, err)
	}
	return parseNetDev(text), nil
}

// parseNetDev reads /proc/net/dev: two lines of headings, then a line an
// interface. The loopback device is left out: what goes through it never leaves
// the container.
func parseNetDev(text []byte) []InterfaceStats {
	var list []InterfaceStats
	for line := range bytes.Lines(text) {
		// Names may hold anything but spaces and slashes, colons too.
		end := bytes.LastIndexByte(line, ':')
		if end < 0 {
			continue
		}
		name := string(bytes.TrimSpace(line[:end]))
		fields := bytes.Fields(line[end+1:])
		if name == "lo" || len(fields) < 16 {
			continue
		}
		number := func(i int) uint64 {
			n, _ := strconv.ParseUint(string(fields[i]), 10, 64)
			return n
		}
		list = append(list, InterfaceStats{
			Name: name, RxBytes: number(0), RxPackets: number(1), RxErrors: number(2), RxDropped: number(3),
			TxBytes: number(8), TxPackets: number(9), TxErrors: number(10), TxDropped: number(11),
		})
	}
	return list
}
