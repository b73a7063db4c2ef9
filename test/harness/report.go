package harness

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Report tells what a test has done, by pairs of a word and a number, for docs/reliability.md:
// build/scripts/reliability names a file in BERTH_REPORT, and makes the page of its lines. Without
// it nothing is written.
func Report(t testing.TB, pairs ...any) {
	t.Helper()
	path := os.Getenv("BERTH_REPORT")
	if path == "" || t.Failed() {
		return
	}
	line := t.Name()
	for i := 0; i+1 < len(pairs); i += 2 {
		line += fmt.Sprintf("\t%v\t%v", pairs[i], pairs[i+1])
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.ReplaceAll(line, "\n", " ") + "\n"); err != nil {
		t.Fatal(err)
	}
}
