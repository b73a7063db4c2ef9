package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// needs says what the blocks of a how-to can't do without.
var needs = map[string]func(t *testing.T){
	"cap-a-build": func(t *testing.T) {
		for _, name := range []string{"cpu", "memory", "pids"} {
			harness.Controller(t, name)
		}
		harness.NeedTool(t, "make", "make")
	},
	"limits": func(t *testing.T) { harness.Controller(t, "pids") },
}

// Every how-to does what it says.
func TestHowTos(t *testing.T) {
	pages, err := filepath.Glob("../../docs/howto/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%q, %v", pages, err)
	}
	for _, name := range pages {
		name := strings.TrimSuffix(filepath.Base(name), ".md")
		t.Run(name, func(t *testing.T) {
			harness.NeedTool(t, "busybox", "busybox-static")
			if need := needs[name]; need != nil {
				need(t)
			}
			b := harness.New(t)
			defer b.ReapOrphans()
			env := commands(t, b, "berth")
			if name == "checkpoint" {
				if err := os.Symlink(harness.NeedCriu(t), b.Path("bin/criu")); err != nil {
					t.Fatal(err)
				}
			}
			page(t, "docs/howto/"+name+".md", "", env)
		})
	}
}
