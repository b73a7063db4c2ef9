package attacks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// box prepares a box whose current folder is the given one of the test's.
func box(b *harness.Box, dir string, args ...string) *harness.Command {
	c := b.Command(append([]string{"box"}, args...)...)
	c.Dir = b.Path(dir)
	return c
}

// The report of a box may go to a folder that the box writes to. What it puts in the report's place is not followed, nor waited for.
func TestReportIsExchangedByTheBox(t *testing.T) {
	for name, put := range map[string]string{
		"link": "ln -sf ../outside/file use", "link to a folder": "ln -sf ../outside use", "fifo": "mkfifo use", "folder": "mkdir use",
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			b := harness.NewForAnyone(t)
			o := newOutside(b, map[string]string{"file": "the host's"})
			makeTree(t, b.Path("work"), map[string]string{"use": "an old report"}, nil)
			box(b, "work", "--rw", ".", "--report", "json:use", "--", "/bin/sh", "-c", "ln use kept && rm use && "+put).Run().OK(t)
			o.untouched()
			if text, err := os.ReadFile(filepath.Join(b.Path("work"), "kept")); err != nil || !strings.HasPrefix(string(text), `{"id":`) || !strings.HasSuffix(string(text), "}\n") {
				t.Errorf("the report is %q, %v", text, err)
			}
			harness.Report(t, "attacks", 1)
		})
	}
}
