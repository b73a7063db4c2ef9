package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
)

//go:embed table.txt
var table string

func main() {
	rows, err := parse(table)
	if err == nil {
		var there tests
		if there, err = findTests("."); err == nil {
			err = check(rows, there)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
	write(os.Stdout, rows)
}

// write writes the page.
func write(w io.Writer, rows []row) {
	covered := 0
	for _, r := range rows {
		if len(r.tests) > 0 {
			covered++
		}
	}
	fmt.Fprintf(w, `# Conformance

What [the OCI runtime specification](https://github.com/opencontainers/runtime-spec) 1.3 requires of a runtime on Linux, and which tests cover it.
A test is named by its directory and function. Those in `+"`test/integration`"+` look from inside a container. They are skipped, with the reason, if the
machine lacks what they need. Where that is most machines, the row says so, and names another test that checks what the kernel is asked for. %d of %d requirements have a test; a dash means none.

This page is generated from `+"`test/conformance/table.txt`"+` by `+"`make docs`"+`.
`, covered, len(rows))
	document := ""
	for _, r := range rows {
		if r.document != document {
			document = r.document
			fmt.Fprintf(w, "\n## %s\n\n| section | | requirement | tests |\n| --- | --- | --- | --- |\n", document)
		}
		tests := "–"
		for i, t := range r.tests {
			if i == 0 {
				tests = ""
			} else {
				tests += ", "
			}
			tests += "`" + t + "`"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", r.section, r.level, r.demand, tests)
	}
}
