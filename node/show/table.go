package show

import (
	"strings"
	"unicode/utf8"
)

// Style is what the reader can show.
type Style struct {
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

// table writes rows in columns; those in right are set to the right.
func table(rows [][]string, right func(column int) bool, paint func(row, column int, text string) string) string {
	var widths []int
	for _, r := range rows {
		for i, cell := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for n, r := range rows {
		line := ""
		for i, cell := range r {
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
