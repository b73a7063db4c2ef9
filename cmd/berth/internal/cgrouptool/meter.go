package cgrouptool

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/internal/ptr"
)

// A Row is a cgroup in a ranking: what it uses, and what it used lately.
type Row struct {
	Path  string
	Usage Usage // without the pressure, until AddPressure
	// Per second, since the sample before; nil in the first.
	CPU         *float64 // processors: 1 is one of them, all the time
	Read, Write *float64 // bytes

	place string // the path of the cgroup, where Path is a name
	homes []*cgroup.Hierarchy
}

// Meter measures cgroups again and again.
type Meter struct {
	tools *Tools
	look  func(visit func(name string, n *Node)) error

	last map[string]Usage
	at   time.Time
	now  func() time.Time
}

// NewMeter measures the cgroups below a target, down to a depth.
func (t *Tools) NewMeter(target Target, depth int) *Meter {
	return &Meter{tools: t, now: time.Now, look: func(visit func(string, *Node)) error {
		top, err := t.Tree(target, Looking{Depth: depth, Parts: Ranked})
		if err == nil {
			top.visit(func(n *Node) { visit(n.Path, n) })
		}
		return err
	}}
}

// A Named is a cgroup that is shown by a name of its own.
type Named struct{ Name, Path string }

// NewNamedMeter measures the cgroups that a function lists, each time again, with
// those below them down to a depth. One that has gone meanwhile is left out.
func (t *Tools) NewNamedMeter(list func() ([]Named, error), depth int) *Meter {
	return &Meter{tools: t, now: time.Now, look: func(visit func(string, *Node)) error {
		groups, err := list()
		if err != nil {
			return err
		}
		for _, g := range groups {
			top, err := t.Tree(Target{Path: g.Path}, Looking{Depth: depth, Parts: Ranked})
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			top.visit(func(n *Node) { visit(g.Name+strings.TrimPrefix(n.Path, g.Path), n) })
		}
		return nil
	}}
}

// Sample measures all cgroups once.
func (m *Meter) Sample() ([]Row, error) {
	at := m.now()
	elapsed := at.Sub(m.at).Seconds()
	next := make(map[string]Usage, len(m.last))
	rows := make([]Row, 0, len(m.last))
	err := m.look(func(name string, n *Node) {
		next[name] = n.Usage
		row := Row{Path: name, Usage: n.Usage, place: n.Path, homes: n.Hierarchies}
		if before, known := m.last[name]; known && elapsed > 0 {
			row.CPU = rate(before.CPU, n.Usage.CPU, elapsed*1e9)
			row.Read = rate(before.ReadBytes, n.Usage.ReadBytes, elapsed)
			row.Write = rate(before.WrittenBytes, n.Usage.WrittenBytes, elapsed)
		}
		rows = append(rows, row)
	})
	if err != nil {
		return nil, err
	}
	m.last, m.at = next, at
	return rows, nil
}

// AddPressure completes the rows that are shown: nothing is ordered by it, and to read it of
// thousands of cgroups for a screen of fifty takes as long as all the rest.
func (m *Meter) AddPressure(rows []Row) {
	for i := range rows {
		r := &rows[i]
		with := m.tools.usageAt(r.place, r.homes, All)
		r.Usage.CPUPressure, r.Usage.MemoryPressure, r.Usage.IOPressure = with.CPUPressure, with.MemoryPressure, with.IOPressure
	}
}

// rate is what a counter gained. One that is less than before belongs to a
// cgroup that was removed and recreated in between.
func rate(before, after *uint64, elapsed float64) *float64 {
	if before == nil || after == nil || *after < *before {
		return nil
	}
	return ptr.To(float64(*after-*before) / elapsed)
}

// Order is what a ranking goes by; its letters are those of systemd-cgtop(1).
type Order byte

// The orders.
const (
	ByPath   Order = 'p'
	ByTasks  Order = 't'
	ByCPU    Order = 'c'
	ByMemory Order = 'm'
	ByIO     Order = 'i'
)

// ParseOrder reads the name of an order, or its letter.
func ParseOrder(text string) (Order, bool) {
	for _, o := range []Order{ByPath, ByTasks, ByCPU, ByMemory, ByIO} {
		if text == o.String() || text == string(byte(o)) {
			return o, true
		}
	}
	return 0, false
}

func (o Order) String() string {
	switch o {
	case ByPath:
		return "path"
	case ByTasks:
		return "tasks"
	case ByCPU:
		return "cpu"
	case ByMemory:
		return "memory"
	case ByIO:
		return "io"
	}
	return "?"
}

// Sort orders rows, the greatest first; what is not known comes last. Before
// there is a rate, the counter since the start decides.
func Sort(rows []Row, by Order) {
	slices.SortStableFunc(rows, func(a, b Row) int {
		c := 0
		switch by {
		case ByTasks:
			c = descending(a.Usage.Tasks, b.Usage.Tasks)
		case ByCPU:
			if c = descending(a.CPU, b.CPU); c == 0 {
				c = descending(a.Usage.CPU, b.Usage.CPU)
			}
		case ByMemory:
			c = descending(a.Usage.Memory, b.Usage.Memory)
		case ByIO:
			if c = descending(sum(a.Read, a.Write), sum(b.Read, b.Write)); c == 0 {
				c = descending(sum(a.Usage.ReadBytes, a.Usage.WrittenBytes), sum(b.Usage.ReadBytes, b.Usage.WrittenBytes))
			}
		}
		if c == 0 {
			c = strings.Compare(a.Path, b.Path)
		}
		return c
	})
}

func descending[T cmp.Ordered](a, b *T) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*b, *a)
}

func sum[T uint64 | float64](a, b *T) *T {
	if a == nil || b == nil {
		return a
	}
	return ptr.To(*a + *b)
}
