package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"
)

//go:embed table.txt
var table string

//go:embed mutate/noticed.txt
var noticed string

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
	covered, tried := 0, 0
	for _, r := range rows {
		if len(r.tests) > 0 {
			covered++
		}
		if r.tried() {
			tried++
		}
	}
	fmt.Fprintf(w, `# Conformance

What [the OCI runtime specification](https://github.com/opencontainers/runtime-spec) 1.3 requires of a runtime on Linux, and which tests cover it.
A test is named by its directory and function. Those in `+"`test/integration`"+` look from inside a container. They are skipped, with the reason, if the
machine lacks what they need. Where that is most machines, the row says so, and names another test that checks what the kernel is asked for. %d of %d requirements have a test; a dash means none.
A check mark means that the test itself has been tried: the code was damaged in one place, and the test failed. %d are; `+"`make mutate`"+` repeats it.

This page is generated from `+"`test/conformance/table.txt`"+` by `+"`make docs`"+`.
`, covered, len(rows), tried)
	document := ""
	for _, r := range rows {
		if r.document != document {
			document = r.document
			fmt.Fprintf(w, "\n## %s\n\n| section | | requirement | tests | tried |\n| --- | --- | --- | --- | --- |\n", document)
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
		mark := ""
		if r.tried() {
			mark = "✓"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", r.section, r.level, r.demand, tests, mark)
	}
}

// tried tells whether damage to what the demand is met by has been noticed.
func (r *row) tried() bool {
	line := r.level + " " + r.demand + " = " + strings.Join(r.tests, " ")
	for known := range strings.Lines(noticed) {
		if _, demand, ok := strings.Cut(strings.TrimSuffix(known, "\n"), " "); ok && strings.HasPrefix(line, demand) {
			return true
		}
	}
	return false
}
