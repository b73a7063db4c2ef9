package cgroup

import (
	"bytes"
	"math"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/ptr"
)

// NoLimit is the limit of what is not limited.
const NoLimit = math.MaxUint64

// Stats is what the kernel counts for a group and those below it, on either
// version. What this host does not tell is nil, never 0.
type Stats struct {
	CPU     *CPUStats               `json:"cpu,omitempty"`
	Cpuset  *CpusetStats            `json:"cpuset,omitempty"`
	Memory  *MemoryStats            `json:"memory,omitempty"`
	IO      *IOStats                `json:"io,omitempty"`
	Pids    *PidsStats              `json:"pids,omitempty"`
	Hugetlb map[string]HugetlbStats `json:"hugetlb,omitempty"` // by page size, as "2MB"
	RDMA    map[string]RDMAStats    `json:"rdma,omitempty"`    // by device
	Misc    map[string]Counter      `json:"misc,omitempty"`    // by resource
	DMem    map[string]Counter      `json:"dmem,omitempty"`    // by memory region of a device
	Tree    *TreeStats              `json:"tree,omitempty"`
}

// Counter is something that is used up and may be limited.
type Counter struct {
	Usage    *uint64 `json:"usage,omitempty"`
	Peak     *uint64 `json:"peak,omitempty"`
	Limit    *uint64 `json:"limit,omitempty"`    // NoLimit for none
	Failures *uint64 `json:"failures,omitempty"` // how often the limit was hit
}

// Part is a part of the statistics.
type Part uint16

// The parts, which read their own files only. NUMA goes with Memory and
// Hugetlb, and is not in Everything: its files are long.
const (
	CPU Part = 1 << iota
	Cpuset
	Memory
	IO
	Pids
	Hugetlb
	RDMA
	Misc
	DMem
	Tree
	NUMA
	// Totals leaves of CPU, Memory, IO and Pids the usage and the limit, which takes a file or two
	// for each: what a list of thousands of groups shows. Pressures adds their pressure to that.
	Totals
	Pressures

	Everything = NUMA - 1
)

// Stats reads the group's counters: each file once. Without parts it reads
// Everything.
func (g *Group) Stats(parts ...Part) (*Stats, error) {
	var want Part
	for _, p := range parts {
		want |= p
	}
	if want == 0 {
		want = Everything
	}
	buf := statsBuffers.Get().(*[]byte)
	defer statsBuffers.Put(buf)
	r := statsReader{g: g, buf: *buf, totals: want&Totals != 0, pressures: want&(Totals|Pressures) != Totals}
	s := &Stats{}
	for _, step := range []struct {
		part Part
		read func(*statsReader, *Stats, Part)
	}{
		{CPU, readCPU}, {Cpuset, readCpuset}, {Memory, readMemory}, {IO, readIO}, {Pids, readPids},
		{Hugetlb, readHugetlb}, {RDMA, readRDMA}, {Misc, readMisc}, {DMem, readDMem}, {Tree, readTree},
	} {
		if want&step.part != 0 && r.err == nil {
			step.read(&r, s, want)
		}
	}
	if r.err == nil && r.count == 0 {
		r.err = &Error{Op: "read the counters of", Path: g.path, Err: os.ErrNotExist}
	}
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// statsBuffers are read into by one Stats after the other, thousands of times in a list.
var statsBuffers = sync.Pool{New: func() any { buf := make([]byte, 8192); return &buf }}

// statsReader reads files of a group into one buffer. Files that are not there
// are told from failures, which end the reading.
type statsReader struct {
	g     *Group
	buf   []byte
	count int // of the files that were there
	err   error

	totals, pressures bool // what of a part is wanted
}

// text reads a file; false if this kernel has it not, or has it switched off.
// What it gives is good until the next call.
func (r *statsReader) text(n *node, file string) ([]byte, bool) {
	if r.err != nil || n == nil {
		return nil, false
	}
	dir, err := r.g.open(n)
	if err == nil {
		var text []byte
		if text, err = readRecord(dir, n.file(file), r.buf); err == nil {
			r.count++
			return text, true
		}
	}
	switch {
	case err == unix.ENOENT, err == unix.EOPNOTSUPP:
	case err == unix.ENODEV:
		r.err = &Error{Op: "read", Path: n.full(n.file(file)), Err: os.ErrNotExist}
	default:
		r.err = &Error{Op: "read", Path: n.full(n.file(file)), Err: err}
	}
	return nil, false
}

// number reads a file with one number or "max"; nil if there is none.
func (r *statsReader) number(n *node, file string) *uint64 {
	text, ok := r.text(n, file)
	if !ok {
		return nil
	}
	return parseAmount(text)
}

// parseAmount reads a number or "max". Version 1 shows no limit as the
// greatest page count, in bytes (PAGE_COUNTER_MAX, of pages up to 64 KiB).
func parseAmount(text []byte) *uint64 {
	text = bytes.TrimSpace(text)
	if string(text) == "max" || string(text) == "-1" {
		return ptr.To(uint64(NoLimit))
	}
	value, ok := parseUint(text)
	if !ok {
		return nil
	}
	if value >= math.MaxInt64&^(64<<10-1) {
		value = NoLimit
	}
	return &value
}

// orNil gives the counter if any of it is known.
func (c Counter) orNil() *Counter {
	if c == (Counter{}) {
		return nil
	}
	return &c
}
