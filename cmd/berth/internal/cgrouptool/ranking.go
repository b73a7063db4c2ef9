package cgrouptool

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berth-runtime/berth/internal/ptr"
)

// Ranking is what a drawing of rows says above them.
type Ranking struct {
	Title      string // of the names; "" for CGROUP
	By         Order
	Processors int    // of the machine: bars of CPU are shares of all
	Memory     uint64 // of the machine: bars of memory without a limit are shares of it
	Keys       bool   // tell the keys that the live view has
}

// Ranking measures the machine for drawings of its cgroups.
func (t *Tools) Ranking(by Order, processors int) Ranking {
	total, _, _ := t.memory()
	return Ranking{By: by, Processors: processors, Memory: total}
}

const barWidth = 8

// column is one of a ranking: what it shows, and when there is room for it.
type column struct {
	title string
	order Order
	width int
	// rank is the order in which columns get room; 0 is the first.
	rank  int
	cell  func(*Row) string
	color func(*Row) string
	bar   func(*Row) *float64
}

func (k Ranking) columns() []column {
	integer := func(n uint64) string { return strconv.FormatUint(n, 10) }
	percent := func(share float64) string { return strconv.FormatFloat(share, 'f', 1, 64) }
	perSecond := func(n float64) string { return Size(uint64(n)) }
	none := func(*Row) string { return plain }
	pressure := func(pick func(*Usage) *float64) column {
		return column{width: 5, cell: func(r *Row) string { return orNone(pick(&r.Usage), percent) }, color: func(r *Row) string {
			if p := pick(&r.Usage); p != nil && *p >= 10 {
				return heat(*p / 50)
			}
			return plain
		}}
	}
	list := []column{
		{title: "TASKS", order: ByTasks, width: 6, rank: 2, color: none,
			cell: func(r *Row) string { return orNone(r.Usage.Tasks, integer) }},
		{title: "%CPU", order: ByCPU, width: 6, rank: 0, color: none,
			cell: func(r *Row) string {
				return orNone(r.CPU, func(n float64) string { return percent(100 * n) })
			}},
		{title: "", width: barWidth, rank: 6, bar: func(r *Row) *float64 { return share(r.CPU, float64(k.Processors)) }},
		{title: "MEMORY", order: ByMemory, width: 7, rank: 1, color: none,
			cell: func(r *Row) string { return orNone(r.Usage.Memory, Size) }},
		{title: "", width: barWidth, rank: 7, bar: k.memoryShare},
		{title: "READ/s", order: ByIO, width: 7, rank: 3, color: none,
			cell: func(r *Row) string { return orNone(r.Read, perSecond) }},
		{title: "WRITE/s", order: ByIO, width: 7, rank: 3, color: none,
			cell: func(r *Row) string { return orNone(r.Write, perSecond) }},
	}
	for _, p := range []struct {
		title string
		pick  func(*Usage) *float64
	}{
		{"P.CPU", func(u *Usage) *float64 { return u.CPUPressure }},
		{"P.MEM", func(u *Usage) *float64 { return u.MemoryPressure }},
		{"P.IO", func(u *Usage) *float64 { return u.IOPressure }},
	} {
		c := pressure(p.pick)
		c.title, c.rank = p.title, 5
		list = append(list, c)
	}
	return list
}

func share(part *float64, whole float64) *float64 {
	if part == nil || whole <= 0 {
		return nil
	}
	return ptr.To(*part / whole)
}

// memoryShare is of the cgroup's own limit, where it has one below the machine's memory.
func (k Ranking) memoryShare(r *Row) *float64 {
	whole := k.Memory
	if limit := r.Usage.MemoryLimit; limit != nil && (*limit < whole || whole == 0) {
		whole = *limit
	}
	if r.Usage.Memory == nil || whole == 0 {
		return nil
	}
	return ptr.To(float64(*r.Usage.Memory) / float64(whole))
}

// chosen leaves out columns until at least some of the names has room too.
func (k Ranking) chosen(width int) []column {
	const leastName = 20
	list := k.columns()
	for width > 0 {
		total, last := leastName, 0
		for _, c := range list {
			total += c.width + 1
			last = max(last, c.rank)
		}
		if total <= width || last == 0 {
			break
		}
		kept := list[:0]
		for _, c := range list {
			if c.rank != last {
				kept = append(kept, c)
			}
		}
		list = kept
	}
	return list
}

// Rank draws rows as they are ordered. With a height, only what fits is drawn.
func (s Style) Rank(rows []Row, k Ranking) string {
	columns := k.chosen(s.Width)
	name := utf8.RuneCountInString(k.title())
	for i := range rows {
		name = max(name, utf8.RuneCountInString(rows[i].Path))
	}
	if s.Width > 0 {
		name = s.Width
		for _, c := range columns {
			name -= c.width + 1
		}
	}
	if s.Height > 0 {
		rows = rows[:min(len(rows), max(s.Height-2, 0))]
	}
	var b strings.Builder
	s.head(&b, columns, k, name)
	for i := range rows {
		r := &rows[i]
		text := s.fit(s.Printable(r.Path), name)
		line := text + strings.Repeat(" ", name-utf8.RuneCountInString(text))
		for _, c := range columns {
			line += " "
			switch {
			case c.bar == nil:
				cell := c.cell(r)
				line += strings.Repeat(" ", max(0, c.width-len(cell))) + s.paint(c.color(r), cell)
			case c.bar(r) == nil:
				line += strings.Repeat(" ", c.width)
			default:
				line += s.bar(*c.bar(r), c.width)
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if k.Keys {
		b.WriteString(s.paint(faint, s.fit("sort: c cpu  m memory  i io  t tasks  p path   + - interval   space now   q quit", s.Width)))
	}
	return b.String()
}

func (k Ranking) title() string { return cmp.Or(k.Title, "CGROUP") }

func (s Style) head(b *strings.Builder, columns []column, k Ranking, name int) {
	title := s.fit(k.title(), name)
	title += strings.Repeat(" ", name-utf8.RuneCountInString(title))
	if k.By == ByPath {
		title = s.paint(strong, title)
	}
	b.WriteString(title)
	for i, c := range columns {
		color := faint
		if c.order == k.By {
			color = strong
		}
		text := pad(c.title, c.width)
		if i == len(columns)-1 && c.title == "" {
			text = "" // no spaces at the end of the line
		}
		b.WriteString(" " + s.paint(color, text))
	}
	b.WriteByte('\n')
}
