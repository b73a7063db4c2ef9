package cgrouptool

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// lines are the pieces that a tree is drawn with.
type lines struct{ branch, last, through, none, process string }

func (s Style) lines() lines {
	if s.Unicode {
		return lines{"├─", "└─", "│ ", "  ", "·"}
	}
	return lines{"|-", "`-", "| ", "  ", "-"}
}

// row is one line of a drawn tree.
type row struct {
	stem, name string
	color      string
	cells      []string
	heat       []string
}

// columns of a tree, with their headings.
var treeColumns = []string{"MEMORY", "CPU", "TASKS"}

// Draw draws a tree with its usage in columns at the right.
func (s Style) Draw(top *Node) string {
	head := row{name: "CGROUP", cells: treeColumns, heat: make([]string, len(treeColumns)), color: faint}
	rows := s.rows([]row{head}, top, "", "")
	widths := make([]int, len(treeColumns))
	name := 0
	for i := range rows {
		r := &rows[i]
		if r.cells != nil {
			name = max(name, utf8.RuneCountInString(r.stem+r.name))
		}
		for c, cell := range r.cells {
			widths[c] = max(widths[c], utf8.RuneCountInString(cell))
		}
	}
	right := 0
	for _, w := range widths {
		right += 2 + w
	}
	// A terminal too narrow for the columns and some of the name has the names alone.
	if s.Width > 0 && right > s.Width-24 {
		right = 0
	}
	if s.Width > 0 {
		name = min(name, s.Width-right)
	}
	var b strings.Builder
	for i := range rows {
		s.line(&b, &rows[i], name, widths, right > 0)
	}
	return b.String()
}

// line writes a row; name is the width of the column of names. A process has
// no cells, and the whole line for its command.
func (s Style) line(b *strings.Builder, r *row, name int, widths []int, cells bool) {
	if r.cells == nil {
		name = utf8.RuneCountInString(r.stem + r.name)
		if s.Width > 0 {
			name = s.Width
		}
	}
	stem := s.fit(r.stem, name)
	room := name - utf8.RuneCountInString(stem)
	text := s.fit(r.name, room)
	b.WriteString(s.paint(faint, stem) + s.paint(r.color, text))
	if r.cells != nil && cells {
		b.WriteString(strings.Repeat(" ", room-utf8.RuneCountInString(text)))
		for i, cell := range r.cells {
			b.WriteString("  " + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)) + s.paint(r.heat[i], cell))
		}
	}
	b.WriteByte('\n')
}

// rows lays out a node and what is below it. stem leads to the node's own
// line, under to the lines below.
func (s Style) rows(rows []row, n *Node, stem, under string) []row {
	r := row{stem: stem, name: s.Printable(n.Name()), color: strong}
	if stem == "" {
		r.name = s.Printable(n.Path)
	}
	r.cells, r.heat = s.cells(&n.Usage)
	rows = append(rows, r)
	l := s.lines()
	for i, p := range n.Processes {
		piece := l.branch
		if i == len(n.Processes)-1 && len(n.Children) == 0 {
			piece = l.last
		}
		rows = append(rows, row{stem: under + piece + l.process, name: strconv.Itoa(p.PID) + " " + s.Printable(p.Command)})
	}
	for i, child := range n.Children {
		piece, next := l.branch, l.through
		if i == len(n.Children)-1 {
			piece, next = l.last, l.none
		}
		rows = s.rows(rows, child, under+piece, under+next)
	}
	return rows
}

// cells are the usage of one node, with the limit where there is one.
func (s Style) cells(u *Usage) (cells, colors []string) {
	cells = []string{
		ofLimit(u.Memory, u.MemoryLimit, Size),
		orNone(u.CPU, clock),
		ofLimit(u.Tasks, u.TasksLimit, func(n uint64) string { return strconv.FormatUint(n, 10) }),
	}
	return cells, []string{limitHeat(u.Memory, u.MemoryLimit), plain, limitHeat(u.Tasks, u.TasksLimit)}
}

func orNone[T any](value *T, format func(T) string) string {
	if value == nil {
		return "-"
	}
	return format(*value)
}

func ofLimit(used, limit *uint64, format func(uint64) string) string {
	text := orNone(used, format)
	if used != nil && limit != nil {
		text += "/" + format(*limit)
	}
	return text
}

// limitHeat colours what comes near its limit.
func limitHeat(used, limit *uint64) string {
	if used == nil || limit == nil || *limit == 0 {
		return plain
	}
	if color := heat(float64(*used) / float64(*limit)); color != cool {
		return color
	}
	return plain
}
