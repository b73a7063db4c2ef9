package show

import (
	"strings"
	"unicode/utf8"
)

// Style is what the reader can show.
type Style struct {
	Width   int // in characters; 0 is without bounds
	Color   bool
	Unicode bool
}

const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (s Style) paint(color, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// pick is the first of two with Unicode, else the second.
func (s Style) pick(unicode, ascii string) string {
	if s.Unicode {
		return unicode
	}
	return ascii
}

// table writes rows in columns; those in right are set to the right. What the terminal has no room
// for is cut, or left out.
func (s Style) table(rows [][]string, right func(column int) bool, paint func(row, column int, text string) string) string {
	var widths []int
	for _, r := range rows {
		for i, cell := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	columns := s.narrow(widths, right)
	var b strings.Builder
	for n, r := range rows {
		line := ""
		r = r[:min(columns, len(r))]
		for i, cell := range r {
			cell = s.cut(cell, widths[i])
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			text := paint(n, i, cell)
			switch {
			case right(i):
				line += space + text
			case i == len(r)-1:
				line += text
			default:
				line += text + space
			}
			if i < len(r)-1 {
				line += "  "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// narrow says how many columns a line has room for, where texts are cut and numbers are whole: the
// last ones are left out. Of the widest texts of those that stay it takes what is too much.
func (s Style) narrow(widths []int, right func(column int) bool) int {
	const text, number = 9, 16 // no text is cut shorter, no number is longer
	cuttable := func(i int) bool { return widths[i] > text && (!right(i) || widths[i] > number) }
	if s.Width <= 0 {
		return len(widths)
	}
	line, least, columns := -2, -2, 0
	for i, w := range widths {
		least += w + 2
		if cuttable(i) {
			least += text - w
		}
		if least > s.Width && i > 0 {
			break
		}
		line += w + 2
		columns++
	}
	for ; line > s.Width; line-- {
		widest := -1
		for i := range columns {
			if cuttable(i) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break // a terminal with no room for one column
		}
		widths[widest]--
	}
	return columns
}

// cut takes out of the middle of a text what is too long: a path tells most at its ends.
func (s Style) cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	sign := []rune(s.pick("…", ".."))
	room := max(width-len(sign), 0)
	return string(runes[:room/2]) + string(sign) + string(runes[len(runes)-(room-room/2):])
}

// bar draws shares of a whole, each with its own sign.
func (s Style) bar(width int, parts ...part) string {
	var b strings.Builder
	used, sum := 0, 0.0
	for _, p := range parts {
		sum += p.share
		end := min(int(sum*float64(width)+0.5), width)
		if end == used && p.share > 0.005 && used < width {
			end++ // what is there is seen
		}
		if end > used {
			b.WriteString(s.paint(p.color, strings.Repeat(s.pick(p.sign, p.ascii), end-used)))
			used = end
		}
	}
	b.WriteString(s.paint(faint, strings.Repeat(s.pick("░", "."), width-used)))
	return b.String()
}

type part struct {
	share              float64
	sign, ascii, color string
}
