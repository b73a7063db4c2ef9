package docs

import (
	"regexp"
	"strings"
	"testing"
)

// The numbers of the README are those of docs/performance.md, row by row.
func TestReadmeSpeed(t *testing.T) {
	short := rows(t, "../../README.md", "| | berth | crun | runc |")
	long := rows(t, "../../docs/performance.md", "| | berth | crun | runc | C floor | berth to crun |")
	if len(short) < 5 {
		t.Errorf("the README has %d rows", len(short))
	}
	for _, row := range short {
		found := false
		for _, full := range long {
			found = found || row[1] == full[1] && row[2] == full[2] && row[3] == full[3]
		}
		if !found {
			t.Errorf("README.md: %q is in no row of docs/performance.md", row)
		}
	}
}

// rows reads a table: of each row the cells, and of each cell after the first the first number.
func rows(t *testing.T, file, header string) (list [][]string) {
	t.Helper()
	_, table, found := strings.Cut(read(t, file), header+"\n")
	if !found {
		t.Fatalf("%s has no table with %q", file, header)
	}
	number := regexp.MustCompile(`^[0-9.,]+`)
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| ") {
			break
		}
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if strings.HasPrefix(cells[0], "---") {
			continue
		}
		for i := 1; i < len(cells); i++ {
			cells[i] = number.FindString(strings.TrimSpace(cells[i]))
		}
		for len(cells) < 4 {
			cells = append(cells, "")
		}
		list = append(list, cells)
	}
	return list
}
