package doctor

import (
	"strings"

	"github.com/berth-runtime/berth/internal/json"
)

// colours of a terminal (ECMA-48, SGR).
const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	faint  = "\x1b[2m"
	plain  = "\x1b[0m"
)

// word is how a finding weighs for an audience: a gap that it is not concerned
// with is a hint.
func (f *Finding) word(kind Audience) (word, colour string) {
	switch {
	case f.State == Fine:
		return "ok", green
	case f.State == Gap && f.For&kind != 0:
		return "gap", red
	case f.State == Gap:
		return "hint", yellow
	}
	return "note", yellow
}

func (a Audience) String() string {
	switch a {
	case Root:
		return "root"
	case User:
		return "users"
	}
	return "root and users"
}

// Text tells the findings to a person, the caller's own gaps last, where the eye
// is when it is done.
func Text(findings []Finding, kind Audience, colour bool) []byte {
	var b strings.Builder
	paint := func(colourCode, text string) {
		if colour {
			text = colourCode + text + plain
		}
		b.WriteString(text)
	}
	gaps := 0
	for _, word := range [...]string{"ok", "note", "hint", "gap"} {
		for i := range findings {
			f := &findings[i]
			own, code := f.word(kind)
			if own != word {
				continue
			}
			if own == "gap" {
				gaps++
			}
			paint(code, own+strings.Repeat(" ", 5-len(own)))
			b.WriteString(f.Check + ": " + f.Found)
			if own == "hint" {
				b.WriteString(" (for " + f.For.String() + ")")
			}
			b.WriteByte('\n')
			if f.Without != "" {
				paint(faint, "     so: "+f.Without)
				b.WriteByte('\n')
			}
			for _, fix := range f.Fix {
				fix.text(&b)
			}
		}
	}
	if gaps == 0 {
		b.WriteString("\nNothing is missing for containers of " + kind.String() + ".\n")
	}
	return []byte(b.String())
}

func (f *Fix) text(b *strings.Builder) {
	if f.File == "" {
		b.WriteString("     do: " + f.Run + "\n")
		return
	}
	b.WriteString("     write " + f.File + ":\n")
	for line := range strings.Lines(f.Content) {
		b.WriteString("         " + strings.TrimSuffix(line, "\n"))
		b.WriteByte('\n')
	}
}

// JSON tells the findings to a program.
func JSON(findings []Finding, kind Audience) []byte {
	w := json.NewWriter(nil, "  ")
	w.Object()
	w.Key("healthy").Bool(Healthy(findings, kind))
	w.Key("for").String(kind.String())
	w.Key("findings").Array()
	for i := range findings {
		f := &findings[i]
		word, _ := f.word(kind)
		w.Object()
		w.Key("check").String(f.Check)
		w.Key("for").String(f.For.String())
		w.Key("state").String(word)
		w.Key("found").String(f.Found)
		if f.Without != "" {
			w.Key("without").String(f.Without)
		}
		if len(f.Fix) > 0 {
			w.Key("fix").Array()
			for _, fix := range f.Fix {
				w.Object()
				if fix.File == "" {
					w.Key("run").String(fix.Run)
				} else {
					w.Key("file").String(fix.File)
					w.Key("content").String(fix.Content)
				}
				w.End()
			}
			w.End()
		}
		w.End()
	}
	w.End()
	w.End()
	return append(w.Bytes(), '\n')
}
