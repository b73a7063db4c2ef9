package trace

import (
	"strconv"
	"strings"
	"time"
)

// The measures of the picture, in pixels.
const (
	pictureWidth = 1200
	margin       = 10
	barHeight    = 18
	headHeight   = 48 // the title, and the name of the first row
	letterWidth  = 6.6
)

// SVG is the Trace as a picture: time from left to right, phases below those that they
// are in, and the calls of the init at the bottom. Pointing at a bar tells the rest.
func (t *Trace) SVG() []byte {
	t.end()
	depth := 0
	for i := range t.phases {
		depth = max(depth, t.phases[i].depth+1)
	}
	d := drawing{scale: (pictureWidth - 2*margin) / max(float64(t.took), 1)}
	calls := headHeight + (depth+1)*barHeight + 2*barHeight
	height := calls + margin
	if len(t.calls) > 0 {
		height += barHeight + t.legend()*barHeight
	}
	d.text(`<svg xmlns="http://www.w3.org/2000/svg" width="`, strconv.Itoa(pictureWidth), `" height="`, strconv.Itoa(height),
		`" font-family="monospace" font-size="11"><rect width="100%" height="100%" fill="#fff"/>`, "\n")
	d.label(margin, 18, t.title+": "+Format(t.took))
	d.label(margin, headHeight-6, "berth")
	d.bar(0, t.took, headHeight, 0, t.title, "")
	for i := range t.phases {
		p := &t.phases[i]
		d.bar(p.start, p.took, headHeight+(p.depth+1)*barHeight, i+1, p.name, "")
	}
	if len(t.calls) > 0 {
		d.label(margin, calls-6, "the container's init: a bar a system call, a colour a step")
		d.calls(t, calls)
	}
	d.text("</svg>\n")
	return []byte(d.String())
}

// steps are the calls that follow each other for the same thing.
func (t *Trace) steps() [][]Call {
	var steps [][]Call
	for i := 0; i < len(t.calls); {
		n := i + 1
		for n < len(t.calls) && t.calls[n].Text == t.calls[i].Text && t.calls[n].Pointer == t.calls[i].Pointer {
			n++
		}
		steps = append(steps, t.calls[i:n])
		i = n
	}
	return steps
}

// told is how many of the longest steps the picture tells in words.
const told = 10

func (t *Trace) legend() int { return min(told, len(t.steps())) + 1 }

// calls draws the calls, and lists the longest steps.
func (d *drawing) calls(t *Trace, y int) {
	type longest struct {
		text  string
		took  time.Duration
		color int
	}
	var list []longest
	for i, step := range t.steps() {
		took := time.Duration(0)
		for j := range step {
			c := &step[j]
			d.bar(t.since(c), c.Took, y, i, c.Name, c.Text+pointerOf(c))
			took += c.Took
		}
		at := len(list)
		for at > 0 && list[at-1].took < took {
			at--
		}
		list = append(list, longest{})
		copy(list[at+1:], list[at:])
		list[at] = longest{step[0].Text + pointerOf(&step[0]), took, i}
	}
	for i, l := range list[:min(told, len(list))] {
		top := y + (i+2)*barHeight
		d.text(`<rect x="10" y="`, strconv.Itoa(top-10), `" width="10" height="10" fill="`, colour(l.color), `"/>`)
		d.label(margin+16, top, Format(l.took)+"  "+l.text)
	}
}

func pointerOf(c *Call) string {
	if c.Pointer == "" {
		return ""
	}
	return " (" + c.Pointer + ")"
}

// drawing is the text of a picture.
type drawing struct {
	strings.Builder
	scale float64 // pixels for a nanosecond
}

func (d *drawing) text(parts ...string) {
	for _, p := range parts {
		d.WriteString(p)
	}
}

func (d *drawing) label(x, y int, words string) {
	d.text(`<text x="`, strconv.Itoa(x), `" y="`, strconv.Itoa(y), `">`, escaped(words), "</text>\n")
}

// bar draws a length of time, with its name where that fits.
func (d *drawing) bar(start, took time.Duration, y, color int, name, more string) {
	x, width := margin+d.scale*float64(start), max(d.scale*float64(took), 0.3)
	d.text(`<g><title>`, escaped(name), ": ", Format(took))
	if more != "" {
		d.text(", ", escaped(more))
	}
	d.text(`</title><rect x="`, pixels(x), `" y="`, strconv.Itoa(y), `" width="`, pixels(width), `" height="`, strconv.Itoa(barHeight-1), `" fill="`, colour(color), `"/>`)
	words := name + " " + Format(took)
	if len(words) > int((width-4)/letterWidth) {
		words = name
	}
	if len(words) <= int((width-4)/letterWidth) {
		d.text(`<text x="`, pixels(x+3), `" y="`, strconv.Itoa(y+13), `">`, escaped(words), `</text>`)
	}
	d.text("</g>\n")
}

func pixels(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// colour goes round the warm half of the circle, as flame graphs do.
func colour(n int) string {
	return "hsl(" + strconv.Itoa(n*23%60) + ",85%," + strconv.Itoa(62+n*7%20) + "%)"
}

// escaped is text for XML, which has no way to hold most control characters.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '&':
			b.WriteString("&amp;")
		case r < ' ' || r == 0x7f || r == 0xfffe || r == 0xffff:
			b.WriteByte('?')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Format is a length of time in three figures, as people say it.
func Format(d time.Duration) string {
	value, unit := float64(d)/1e3, " µs"
	switch {
	case d >= time.Second:
		value, unit = float64(d)/1e9, " s"
	case d >= time.Millisecond:
		value, unit = float64(d)/1e6, " ms"
	}
	decimals := 2
	if value >= 10 {
		decimals = 1
	}
	if value >= 100 {
		decimals = 0
	}
	return strconv.FormatFloat(value, 'f', decimals, 64) + unit
}
