package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// withSystemd is a box whose containers become units of the system's systemd, or of the user's
// where the test runs as one. It skips the test where there is none.
func withSystemd(t *testing.T) *harness.Box {
	t.Helper()
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		harness.Skip(t, "needs systemd as process 1")
	}
	harness.NeedTool(t, "systemctl", "systemd")
	if os.Geteuid() != 0 && os.Getenv("XDG_RUNTIME_DIR") == "" {
		harness.Skip(t, "needs the systemd of the user: XDG_RUNTIME_DIR is not set")
	}
	b := harness.NewForAnyone(t)
	b.Globals = append(b.Globals, "--systemd-cgroup")
	return b
}

// systemdAsRoot is withSystemd for what only the system's systemd can do.
func systemdAsRoot(t *testing.T) *harness.Box {
	t.Helper()
	if os.Geteuid() != 0 {
		harness.Skip(t, "needs root")
	}
	return withSystemd(t)
}

// unitContainer is a container without a cgroupsPath, and the name of its unit.
func unitContainer(b *harness.Box, args ...string) (*harness.Container, string) {
	b.T.Helper()
	c := b.Container(args...)
	c.Spec.Linux.CgroupsPath = ""
	c.Spec.Linux.Resources = &specs.LinuxResources{}
	if os.Geteuid() != 0 {
		harness.Rootless(c.Spec)
	}
	return c, "berth-" + c.ID + ".scope"
}

func systemctl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := trySystemctl(args...)
	if err != nil {
		t.Fatalf("systemctl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

func trySystemctl(args ...string) (string, error) {
	if os.Geteuid() != 0 {
		args = append([]string{"--user"}, args...)
	}
	out, err := exec.Command("systemctl", args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// property asks systemd for a property of a unit, as a person reads it.
func property(t *testing.T, unit, name string) string {
	t.Helper()
	return systemctl(t, "show", "--value", "-p", name, unit)
}

// systemdVersion is that of the systemd that answers.
func systemdVersion(t *testing.T) int {
	t.Helper()
	digits := strings.TrimLeft(systemctl(t, "show", "--value", "-p", "Version"), "v")
	if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = digits[:end]
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// unitFile reads a file of the unit's cgroup, in whichever hierarchy its controller is.
func unitFile(t *testing.T, unit, controller, v1, v2 string) string {
	t.Helper()
	h, name := harness.Controller(t, controller), v1
	if h.Unified {
		name = v2
	}
	return strings.TrimSpace(readFile(t, filepath.Join(h.Dir, property(t, unit, "ControlGroup"), name)))
}

// onV2 says whether all controllers are on version 2.
func onV2(t *testing.T) bool {
	t.Helper()
	all := harness.Hierarchies(t)
	return len(all) == 1 && all[0].Unified
}

func needV2(t *testing.T) {
	t.Helper()
	if !onV2(t) {
		harness.Skip(t, "needs a host with cgroup v2 alone")
	}
}

// gone waits until systemd does not know the unit any more.
func gone(t *testing.T, unit string) {
	t.Helper()
	deadline := time.Now().Add(harness.Deadline)
	for {
		state := property(t, unit, "LoadState")
		if state == "not-found" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("unit %s is still there: %s, %s", unit, state, property(t, unit, "ActiveState"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// runningUnits are the units of the test's containers that systemd says are running.
func runningUnits(t *testing.T, b *harness.Box) []string {
	t.Helper()
	return unitsOf(t, b, "--state=running")
}

func unitsOf(t *testing.T, b *harness.Box, flags ...string) []string {
	t.Helper()
	out := systemctl(t, append(flags, "list-units", "--no-legend", "--plain", "berth-"+b.Tag+"-*")...)
	var units []string
	for line := range strings.Lines(out) {
		unit, _, _ := strings.Cut(line, " ")
		units = append(units, unit)
	}
	return units
}

// unitsGone waits until systemd does not know any unit of the test's containers, not even as one
// that failed.
func unitsGone(t *testing.T, b *harness.Box) {
	t.Helper()
	wait.Until(t, "systemd knows none of the units any more", func() bool { return len(unitsOf(t, b, "--all")) == 0 })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
