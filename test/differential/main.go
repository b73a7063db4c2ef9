package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"
)

//go:embed counts.txt
var counts string

func main() {
	rows, err := readTable(tableText)
	if err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		os.Exit(1)
	}
	page(os.Stdout, rows)
}

// page writes the page of the documentation.
func page(w io.Writer, rows []*row) {
	fmt.Fprint(w, `# Differences from runc and crun

The tests run the same configs and commands under Berth, runc and crun, and compare everything that a process inside can see, and its caller and the host outside: some thousand configs, built
from every entry of the specification with its interesting values, alone, in pairs and at random; as root, in a user namespace and as an ordinary user; on cgroup v1, v2 and hybrid hosts
([how](../test/differential/doc.go)). These tables list every difference from runc, with its reason; any other difference fails the tests.
The last table lists defects.

This page is generated from `+"`test/differential/table.txt`"+` by `+"`make docs`"+`.
`)
	fmt.Fprintf(w, "\n## The last full run\n\n| | |\n| --- | --- |\n")
	seen := map[string]bool{}
	for line := range strings.Lines(counts) {
		if seen[line] {
			continue // the tests say both which peers they have
		}
		seen[line] = true
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		fmt.Fprintf(w, "| %s | %s |\n", name, value)
	}
	for _, verdict := range []struct{ name, title string }{{"better", "Better"}, {"equal", "Different, and as good"}, {"open", "Known defects"}} {
		fmt.Fprintf(w, "\n## %s\n\n| what | why | seen as | with | Berth | runc |\n| --- | --- | --- | --- | --- | --- |\n", verdict.title)
		for _, r := range rows {
			if r.verdict == verdict.name {
				fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s |\n", r.title, r.why, code(r.shown["keys"]), code(r.shown["when"]), code(r.shown["ours"]), code(r.shown["runc"]))
			}
		}
	}
}

// code is a value as a table shows it.
func code(value string) string {
	if value == "" {
		return ""
	}
	var all []string
	for _, part := range strings.Split(value, " | ") {
		all = append(all, "`"+part+"`")
	}
	return strings.Join(all, ", ")
}
