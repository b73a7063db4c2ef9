package clidoc

import (
	"strings"
)

// A Page is a man page.
type Page struct {
	File string // berth-run.1
	Text []byte
}

// Man makes a page for each command. source names the release, see the pages that
// all of them point to; the first alone is enough for a command.
func Man(root *Node, source string, see ...string) []Page {
	var pages []Page
	root.walk(func(n *Node) {
		name := strings.ReplaceAll(n.Path, " ", "-")
		pages = append(pages, Page{File: name + ".1", Text: []byte(n.man(name, source, see))})
	})
	return pages
}

func (n *Node) man(name, source string, see []string) string {
	var b strings.Builder
	m := manWriter{&b}
	m.line(".TH", strings.ToUpper(name), "1", "", source, "Berth")
	m.line(".SH", "NAME")
	m.text(name + " - " + strings.TrimSuffix(lowerFirst(n.Summary), "."))
	m.line(".SH", "SYNOPSIS")
	m.raw(".B")
	m.text(n.usage())
	m.line(".SH", "DESCRIPTION")
	m.text(n.Summary)
	for paragraph := range strings.SplitSeq(n.Help, "\n\n") {
		if paragraph != "" {
			m.raw(".PP")
			m.text(paragraph)
		}
	}
	if flags := n.flags(); len(flags) > 0 {
		m.line(".SH", "OPTIONS")
		for _, f := range flags {
			m.raw(".TP")
			m.raw(".B")
			m.text(f.Spelling())
			help := f.Help
			if f.Default != "" && !volatile(f.Default) {
				help += " (default " + f.Default + ")"
			}
			m.text(help)
		}
	}
	if len(n.Subs) > 0 {
		m.line(".SH", "COMMANDS")
		for _, sub := range n.Subs {
			m.raw(".TP")
			m.raw(".B")
			m.text(strings.ReplaceAll(sub.Path, " ", "-") + "(1)")
			m.text(sub.Summary)
		}
	}
	if len(n.Examples) > 0 {
		m.line(".SH", "EXAMPLES")
		m.raw(".nf")
		for _, e := range n.Examples {
			m.text(e)
		}
		m.raw(".fi")
	}
	m.line(".SH", "SEE ALSO")
	if at := strings.LastIndexByte(n.Path, ' '); at > 0 {
		see = append([]string{strings.ReplaceAll(n.Path[:at], " ", "-") + "(1)"}, see[:min(1, len(see))]...)
	}
	m.text(strings.Join(see, ", "))
	return b.String()
}

// manWriter writes the man macros of roff (man(7)).
type manWriter struct{ b *strings.Builder }

func (m manWriter) raw(line string) { m.b.WriteString(line + "\n") }

func (m manWriter) line(macro string, args ...string) {
	m.b.WriteString(macro)
	for _, a := range args {
		m.b.WriteString(` "` + strings.ReplaceAll(escape(a), `"`, `\(dq`) + `"`)
	}
	m.b.WriteByte('\n')
}

// text writes words so that no line of them is taken for a request.
func (m manWriter) text(text string) {
	for line := range strings.Lines(text) {
		line = escape(strings.TrimRight(line, "\n"))
		if line != "" && (line[0] == '.' || line[0] == '\'') {
			line = `\&` + line
		}
		m.raw(line)
	}
}

func escape(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(text)
}

func lowerFirst(text string) string {
	if text == "" {
		return text
	}
	return strings.ToLower(text[:1]) + text[1:]
}
