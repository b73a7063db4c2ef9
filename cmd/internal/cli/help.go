package cli

import (
	"fmt"
	"io"
	"strings"
)

// WriteHelp writes a command's help.
func (c *Command) WriteHelp(w io.Writer, path string) {
	usage := path
	if len(c.Flags.List) > 0 {
		usage += " [options]"
	}
	if c.Commands != nil {
		usage += " COMMAND"
	} else if c.Args != "" {
		usage += " " + c.Args
	}
	fmt.Fprintf(w, "%s\n\nUsage: %s\n", c.Summary, usage)
	if c.Help != "" {
		fmt.Fprintf(w, "\n%s\n", c.Help)
	}
	if c.Commands != nil {
		fmt.Fprint(w, "\nCommands:\n")
		var rows [][2]string
		for _, sub := range c.Commands() {
			rows = append(rows, [2]string{sub.Name, sub.Command().Summary})
		}
		writeRows(w, rows)
	}
	if len(c.Flags.List) > 0 {
		fmt.Fprint(w, "\nOptions:\n")
		var rows [][2]string
		for _, f := range c.Flags.List {
			if !f.Hidden {
				rows = append(rows, [2]string{f.Spelling(), f.text()})
			}
		}
		writeRows(w, rows)
	}
	if len(c.Examples) > 0 {
		fmt.Fprint(w, "\nExamples:\n")
		for _, e := range c.Examples {
			fmt.Fprintf(w, "  %s\n", e)
		}
	}
}

// Spelling is how help shows an option: -b, --bundle DIR.
func (f *Flag) Spelling() string {
	var b strings.Builder
	for _, letter := range f.Letters {
		b.WriteString("-" + string(letter) + ", ")
	}
	b.WriteString("--" + f.Name)
	if f.Value != "" {
		b.WriteString(" " + f.Value)
	}
	return b.String()
}

func (f *Flag) text() string {
	if f.Default != "" {
		return f.Help + " (default " + f.Default + ")"
	}
	return f.Help
}

// writeRows writes two columns; a long left one gets a line of its own.
func writeRows(w io.Writer, rows [][2]string) {
	const widest = 30
	width := 0
	for _, r := range rows {
		if len(r[0]) <= widest {
			width = max(width, len(r[0]))
		}
	}
	for _, r := range rows {
		if len(r[0]) > widest {
			fmt.Fprintf(w, "  %s\n  %*s  %s\n", r[0], width, "", r[1])
			continue
		}
		fmt.Fprintf(w, "  %-*s  %s\n", width, r[0], r[1])
	}
}
