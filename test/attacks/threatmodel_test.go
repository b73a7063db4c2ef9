package attacks

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/threat-model.md promises a test for each weakness: each row names one, and each that is named exists.
func TestThreatModelNamesTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/threat-model.md")
	check(t, err)
	files, err := filepath.Glob("*_test.go")
	check(t, err)
	var source strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(t, err)
		source.Write(text)
	}
	name := regexp.MustCompile("`attacks\\.(Test[A-Za-z]+)`")
	rows := 0
	for line := range strings.Lines(string(page)) {
		found := name.FindAllStringSubmatch(line, -1)
		if strings.HasPrefix(line, "| CVE-") {
			rows++
			if len(found) == 0 {
				t.Errorf("no test is named: %s", line)
			}
		}
		for _, match := range found {
			if !strings.Contains(source.String(), "func "+match[1]+"(") {
				t.Errorf("docs/threat-model.md names %s, which does not exist", match[1])
			}
		}
	}
	if rows < 24 {
		t.Errorf("%d rows", rows)
	}
}
