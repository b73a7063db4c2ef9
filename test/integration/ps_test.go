package integration

import (
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
	parent, _ := harness.Parent(c.PID)
	if len(fields) < 8 || fields[1] != strconv.Itoa(c.PID) || fields[2] != strconv.Itoa(parent) || fields[5] != "?" {
		t.Errorf("%q, want process %d", lines[1], c.PID)
	}
	if !strings.HasSuffix(lines[1], " /inside hang a  word ?[2J") {
		t.Errorf("command in %q", lines[1])
	}
}

// A container that has stopped has no processes, whether or not it had a cgroup to list them by.
func TestPSOfAStoppedContainer(t *testing.T) {
	for _, manager := range []string{"cgroupfs", "disabled"} {
		b := harness.New(t)
		b.Globals = append(b.Globals, "--cgroup-manager", manager)
		c := b.Container("/bin/true")
		c.Spec.Linux.CgroupsPath, c.Spec.Linux.Resources = "", nil
		c.RunDetached()
		c.WaitExit()
		if lines := b.Command("ps", c.ID).Run().OK(t).Lines(); len(lines) != 1 {
			t.Errorf("%s: %q, want the heading alone", manager, lines)
		}
		if out := b.Command("ps", "--format", "json", c.ID).Run().OK(t).Stdout; out != "[]\n" {
			t.Errorf("%s: %q, want an empty list", manager, out)
		}
		c.Delete()
	}
}
