package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each thing that we read or write by ourselves has its row in docs/dependencies.md: where it is,
// what a library would cost, and tests of that name that hold it.
func TestWhatIsOursIsHeld(t *testing.T) {
	page, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| what | ours | the library | what it would cost | held against |\n| --- | --- | --- | --- | --- |\n")
	if !found {
		t.Fatal("docs/dependencies.md has no table of what is ours")
	}
	held := regexp.MustCompile("`([a-z0-9/]+): ((?:Test|Fuzz)[A-Za-z0-9]+)`")
	cost := regexp.MustCompile(`\d µs|not measured`)
	var rows []string
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 5 {
			break
		}
		rows = append(rows, cells[0])
		ours := strings.Trim(cells[1], "`")
		if sources, _ := filepath.Glob(filepath.Join(top(t), ours, "*.go")); len(sources) == 0 {
			t.Errorf("%s: there is no package %s", cells[0], ours)
		}
		if !cost.MatchString(cells[3]) {
			t.Errorf("%s: %q is no cost, and does not say that it was not measured", cells[0], cells[3])
		}
		tests := held.FindAllStringSubmatch(cells[4], -1)
		if len(tests) == 0 {
			t.Errorf("%s: %q names no test", cells[0], cells[4])
		}
		for _, test := range tests {
			if !hasTest(t, test[1], test[2]) {
				t.Errorf("%s: there is no %s in %s", cells[0], test[2], test[1])
			}
		}
	}
	for _, want := range []string{"JSON", "D-Bus", "ttrpc", "protobuf", "command lines", "netlink", "mountinfo", "GVariant", "metrics"} {
		if !strings.Contains(strings.Join(rows, "\n"), want) {
			t.Errorf("there is no row of %s", want)
		}
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(top(t), folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
