package cgrouptool

import (
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berth-runtime/berth/cmd/internal/terminal"
)

// Style is what the reader of a drawing can show.
type Style terminal.Screen

// StyleFor looks at where the output goes.
func StyleFor(out *os.File, getenv func(string) string) Style {
	return Style(terminal.ScreenOf(out, getenv))
}

// Resize asks the terminal for its size.
func (s *Style) Resize(out *os.File) { (*terminal.Screen)(s).Resize(out) }

// The colours, by what they say.
const (
	plain  = ""
	faint  = "2"
	strong = "1"
	warm   = "33"
	hot    = "31"
	cool   = "36"
)

func (s Style) paint(color, text string) string {
	if !s.Color || color == plain || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// Printable makes a name safe for a terminal: a cgroup's name, and a command line,
// may hold anything, escape sequences included.
func (s Style) Printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == utf8.RuneError || !strconv.IsPrint(r) || !s.Unicode && r > '~' {
			r = '?'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// fit cuts a text that is too long, with a sign that it was.
func (s Style) fit(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	sign := "..."
	if s.Unicode {
		sign = "…"
	}
	room := width - utf8.RuneCountInString(sign)
	if room <= 0 {
		return string([]rune(text)[:max(width, 0)])
	}
	return string([]rune(text)[:room]) + sign
}

// bar draws a share of 1.
func (s Style) bar(share float64, width int) string {
	full, empty := "#", "."
	if s.Unicode {
		full, empty = "█", "░"
	}
	n := int(min(max(share, 0), 1)*float64(width) + 0.5)
	if n == 0 && share > 0.005 {
		n = 1
	}
	return s.paint(heat(share), strings.Repeat(full, n)) + s.paint(faint, strings.Repeat(empty, width-n))
}

// heat is the colour of a share that is used up.
func heat(share float64) string {
	switch {
	case share >= 0.9:
		return hot
	case share >= 0.7:
		return warm
	}
	return cool
}

// pad puts spaces in front of a text, which is so long without its colours.
func pad(text string, width int) string {
	return strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text))) + text
}

// Size writes a number of bytes as people read it, in units of 1024.
func Size(n uint64) string {
	const units = "BKMGTPE"
	value, unit := float64(n), 0
	for value >= 1023.95 && unit < len(units)-1 { // what would round to 1024.0
		value /= 1024
		unit++
	}
	if unit == 0 {
		return strconv.FormatUint(n, 10) + "B"
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + units[unit:unit+1]
}

// clock writes nanoseconds of processor time.
func clock(ns uint64) string {
	seconds := ns / 1e9
	two := func(n uint64) string { return string([]byte{byte('0' + n/10%10), byte('0' + n%10)}) }
	switch {
	case seconds < 60:
		return strconv.FormatFloat(float64(ns/1e7)/100, 'f', 2, 64) + "s"
	case seconds < 3600:
		return strconv.FormatUint(seconds/60, 10) + "m" + two(seconds%60) + "s"
	case seconds < 100*3600:
		return strconv.FormatUint(seconds/3600, 10) + "h" + two(seconds/60%60) + "m"
	}
	return strconv.FormatUint(seconds/86400, 10) + "d" + two(seconds/3600%24) + "h"
}
