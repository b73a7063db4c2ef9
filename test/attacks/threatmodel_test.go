package attacks

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/threat-model.md promises a test for each rule and each weakness: each row names one, a
// rule's by the weaknesses that it is said to prevent at least, and each that is named exists.
func TestThreatModelNamesTests(t *testing.T) {
	const top = "../.."
	page, err := os.ReadFile(top + "/docs/threat-model.md")
	check(t, err)
	source := testsByFolder(t, top)
	name := regexp.MustCompile("`(?:[a-z/]*/)?([a-z]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)`")
	rule := regexp.MustCompile(`\bR[0-9]+\b`)
	tested, rules, rows := map[string]bool{}, []string{}, 0
	for line := range strings.Lines(string(page)) {
		found := name.FindAllStringSubmatch(line, -1)
		switch {
		case strings.HasPrefix(line, "| CVE-"):
			rows++
			if len(found) == 0 {
				t.Errorf("no test is named: %s", line)
			}
			for _, r := range rule.FindAllString(line, -1) {
				tested[r] = true
			}
		case strings.HasPrefix(line, "| R"):
			r := rule.FindString(line)
			rules = append(rules, r)
			tested[r] = tested[r] || len(found) > 0
		}
		for _, match := range found {
			if !strings.Contains(source[match[1]], "func "+match[2]+"(") {
				t.Errorf("docs/threat-model.md names %s.%s, which does not exist", match[1], match[2])
			}
		}
	}
	for _, r := range rules {
		if !tested[r] {
			t.Errorf("no test is named for rule %s", r)
		}
	}
	if rows < 24 || len(rules) < 33 {
		t.Errorf("%d weaknesses and %d rules", rows, len(rules))
	}
}

// testsByFolder are the tests' sources by the names of the directories that they are in.
func testsByFolder(t *testing.T, top string) map[string]string {
	t.Helper()
	source := map[string]string{}
	check(t, filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		source[filepath.Base(filepath.Dir(path))] += string(text)
		return err
	}))
	return source
}
