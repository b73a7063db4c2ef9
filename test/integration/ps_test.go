package integration

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// A node need not have ps(1), nor anything else.
func TestPSNeedsNoOther(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang", "a  word", "\x1b[2J").RunDetached()
	ps := b.Command("ps", c.ID)
	ps.Env = []string{"PATH=/nonexistent"}
	lines := ps.Run().OK(t).Lines()
	if len(lines) != 2 {
		t.Fatalf("%q, want a heading and one process", lines)
	}
	if heading := strings.Join(strings.Fields(lines[0]), " "); heading != "UID PID PPID C STIME TTY TIME CMD" {
		t.Errorf("heading %q", heading)
	}
	fields := strings.Fields(lines[1])
	if len(fields) < 8 || fields[1] != strconv.Itoa(c.PID) || fields[2] != strconv.Itoa(parentOf(t, c.PID)) || fields[5] != "?" {
		t.Errorf("%q, want process %d", lines[1], c.PID)
	}
	if !strings.HasSuffix(lines[1], " /inside hang a  word ?[2J") {
		t.Errorf("command in %q", lines[1])
	}
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "PPid:"); found {
			parent, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				t.Fatal(err)
			}
			return parent
		}
	}
	t.Fatalf("/proc/%d/status has no PPid", pid)
	return 0
}
