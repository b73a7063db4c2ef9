package clidoc

import (
	"fmt"
	"strings"
)

// Markdown is the reference of all commands as a page.
func Markdown(root *Node) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# The commands of %s\n\nGenerated from the command definitions (`build/scripts/docs`). `--help` and the man pages show the same text.\n", root.Name)
	b.WriteString("Options take one dash or two, with the value after `=` or as the next argument.\n")
	root.walk(func(n *Node) {
		level := "##"
		if n != root && strings.Count(n.Path, " ") > 1 {
			level = "###"
		}
		fmt.Fprintf(&b, "\n%s %s\n\n%s\n\n```\n%s\n```\n", level, n.Path, n.Summary, n.usage())
		if n.Help != "" {
			fmt.Fprintf(&b, "\n%s\n", n.Help)
		}
		if flags := n.flags(); len(flags) > 0 {
			b.WriteString("\n| option | |\n| --- | --- |\n")
			for _, f := range flags {
				help := f.Help
				if f.Default != "" && !volatile(f.Default) {
					help += " (default " + f.Default + ")"
				}
				fmt.Fprintf(&b, "| `%s` | %s |\n", cell(f.Spelling()), cell(help))
			}
		}
		if len(n.Examples) > 0 {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.Join(n.Examples, "\n"))
		}
	})
	return []byte(b.String())
}

// volatile says whether a default depends on who asks and where.
func volatile(text string) bool { return strings.HasPrefix(text, "/") }

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
