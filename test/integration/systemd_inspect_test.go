package integration

import (
	"os"
	"strings"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/kmsg"
	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// limitsOf is what inspect shows of the limits, by file.
func limitsOf(t *testing.T, c *harness.Container) map[string]string {
	t.Helper()
	var got struct {
		Limits []struct{ File, Now, Pointer string }
	}
	harness.Decode(t, c.Command("inspect", []string{"--json"}).Run().OK(t).Stdout, &got)
	limits := map[string]string{}
	for _, l := range got.Limits {
		limits[l.File] = strings.TrimSpace(l.Now + " " + l.Pointer)
	}
	return limits
}

// Limits are shown as they are now, by whichever program they were set.
func TestUnitInspectLimits(t *testing.T) {
	b := withSystemd(t)
	if os.Geteuid() != 0 {
		needV2(t)
	}
	c, unit := unitContainer(b, "/inside", "hang")
	c.Spec.Linux.Resources.Pids = &specs.LinuxPids{Limit: ptr(int64(40))}
	c.RunDetached()
	memory := "memory.limit_in_bytes"
	if harness.Controller(t, "memory").Unified {
		memory = "memory.max"
	}
	before := limitsOf(t, c)
	if before[memory] != "" || before["pids.max"] != "40 /linux/resources/pids/limit" {
		t.Errorf("at first: %v", before)
	}
	systemctl(t, "set-property", "--runtime", unit, "MemoryMax=64M", "TasksMax=41", "CPUWeight=50")
	now := limitsOf(t, c)
	if now[memory] != "67108864" || now["pids.max"] != "41 /linux/resources/pids/limit" {
		t.Errorf("after systemctl set-property: %v", now)
	}
	if text := c.Command("inspect", nil).Run().OK(t).Stdout; !strings.Contains(text, memory+": 67108864  # not set by linux.resources") {
		t.Errorf("%s", text)
	}
	if r := c.Command("events", []string{"--stats"}).Run().OK(t); !strings.Contains(r.Stdout, "67108864") || !strings.Contains(r.Stdout, `"limit":41`) {
		t.Errorf("events: %s", r.Stdout)
	}
	var rows []map[string]any
	harness.Decode(t, b.Berth("top", "-d", "0.1", "--json", c.ID).OK(t).Stdout, &rows)
	if len(rows) != 1 || rows[0]["memoryLimit"] != float64(64<<20) {
		t.Errorf("top: %v", rows)
	}
}

// Why a container ended is known where systemd has removed its cgroup, and not said of the next one
// of its name.
func TestUnitInspectOOM(t *testing.T) {
	b := systemdAsRoot(t)
	harness.Controller(t, "memory")
	if err := kmsg.Each(func(time.Duration, string) {}); err != nil {
		harness.Skip(t, "needs the kernel's log: %v", err)
	}
	c, unit := unitContainer(b, "/bin/sh", "-c", "read go; exec tail /dev/zero")
	c.Spec.Linux.Resources.Memory = &specs.LinuxMemory{Limit: ptr(int64(20 << 20))}
	end := func() string {
		t.Helper()
		c.WaitExit()
		wait.Until(t, "systemd has removed the cgroup", func() bool { return property(t, unit, "ControlGroup") == "" })
		_, after, _ := strings.Cut(c.Command("inspect", nil).Run().OK(t).Stdout, "It ended: ")
		line, _, _ := strings.Cut(after, "\n")
		return line
	}
	var hold *os.File
	c.Stdin, hold = b.Held()
	c.RunDetached()
	lines, running := watched(b, c)
	if _, err := hold.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	if got := end(); !strings.HasSuffix(got, "; 1 of its processes OOM-killed, by its own limit") {
		t.Errorf("it ended: %s", got)
	}
	if told := lines.All(); strings.Count(told, `"oom"`) != 1 {
		t.Errorf("events: %s", told)
	}
	running.Wait().OK(t)
	hold.Close()
	c.Stdin.Close()
	c.Delete()
	c.Stdin = nil
	c.Spec.Process.Args = []string{"/inside", "hang"}
	c.RunDetached()
	c.Kill("KILL")
	if got := end(); strings.Contains(got, "OOM") {
		t.Errorf("the next of its name ended: %s", got)
	}
}
