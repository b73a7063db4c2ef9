package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// What docs/contributing.md sends a newcomer to is there: the directories and files of its tables,
// and ten changes at least in the second.
func TestRoomsAreThere(t *testing.T) {
	text := read(t, "../../docs/contributing.md")
	named := regexp.MustCompile("`([a-z0-9_]+/[a-z0-9_/.]*)`")
	changes := 0
	for _, header := range []string{"| to change | look in |\n| --- | --- |\n", "| to | go to | because |\n| --- | --- | --- |\n"} {
		_, table, found := strings.Cut(text, header)
		if !found {
			t.Fatalf("docs/contributing.md has no table with %q", header)
		}
		changes = 0
		for line := range strings.Lines(table) {
			if !strings.HasPrefix(line, "| ") {
				break
			}
			changes++
			rooms := named.FindAllStringSubmatch(line, -1)
			if len(rooms) == 0 {
				t.Errorf("%s names no directory", strings.TrimSpace(line))
			}
			for _, room := range rooms {
				info, err := os.Stat("../../" + room[1])
				if err != nil {
					t.Errorf("docs/contributing.md sends to %s, which is not there", room[1])
				} else if info.IsDir() != strings.HasSuffix(room[1], "/") {
					t.Errorf("%s: a directory must end in a slash, and a file must not", room[1])
				}
			}
		}
	}
	if changes < 10 {
		t.Errorf("%d changes are shown, want ten", changes)
	}
}
