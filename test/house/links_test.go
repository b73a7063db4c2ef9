package house

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What a program links is set up at each of its starts: regexp's tables and the self-tests of
// crypto touch two dozen pages, and take a tenth of the CPU time of a short command.
func TestRuntimeLinksLittle(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./cmd/berth")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, "runtime") || len(linked) < 50 {
		t.Fatalf("go list names %d packages", len(linked))
	}
	for _, name := range linked {
		for _, costly := range []string{"regexp", "crypto", "encoding/json", "net", "os/user", "text/template"} {
			if name == costly || strings.HasPrefix(name, costly+"/") {
				t.Errorf("cmd/berth links %s: do without it, as `GODEBUG=inittrace=1 bin/berth --version` shows what it costs each command", name)
			}
		}
	}
}
