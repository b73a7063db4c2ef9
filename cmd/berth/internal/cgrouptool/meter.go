package cgrouptool

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/berth-runtime/berth/internal/ptr"
)

// A Row is a cgroup in a ranking: what it uses, and what it used lately.
type Row struct {
	Path  string
	Usage Usage
	// Per second, since the sample before; nil in the first.
	CPU         *float64 // processors: 1 is one of them, all the time
	Read, Write *float64 // bytes
}

// Meter measures cgroups again and again.
type Meter struct {
	tools *Tools
	look  func(visit func(*Node)) error

	last map[string]Usage
	at   time.Time
	now  func() time.Time
}

// NewMeter measures the cgroups below a target, down to a depth.
func (t *Tools) NewMeter(target Target, depth int) *Meter {
	return &Meter{tools: t, now: time.Now, look: func(visit func(*Node)) error {
		top, err := t.Tree(target, Looking{Depth: depth})
		if err == nil {
			top.visit(visit)
		}
		return err
	}}
}

// A Named is a cgroup that is shown by a name of its own.
type Named struct{ Name, Path string }

// NewNamedMeter measures the cgroups that a function lists, each time again, with
// those below them down to a depth. One that has gone meanwhile is left out.
func (t *Tools) NewNamedMeter(list func() ([]Named, error), depth int) *Meter {
	return &Meter{tools: t, now: time.Now, look: func(visit func(*Node)) error {
		groups, err := list()
		if err != nil {
			return err
		}
		for _, g := range groups {
			top, err := t.Tree(Target{Path: g.Path}, Looking{Depth: depth})
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			top.visit(func(n *Node) {
				n.Path = g.Name + strings.TrimPrefix(n.Path, g.Path)
				visit(n)
			})
		}
		return nil
	}}
}

// Sample measures all cgroups once.
func (m *Meter) Sample() ([]Row, error) {
	at := m.now()
	elapsed := at.Sub(m.at).Seconds()
	next := map[string]Usage{}
	var rows []Row
	err := m.look(func(n *Node) {
		next[n.Path] = n.Usage
		row := Row{Path: n.Path, Usage: n.Usage}
		if before, known := m.last[n.Path]; known && elapsed > 0 {
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
