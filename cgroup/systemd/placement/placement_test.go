package placement

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// inUnit is set in the process that a test starts as a unit of its own.
const inUnit = "PLACEMENT_TEST_IN_UNIT"

func needSystemd(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		t.Skip("needs systemd as process 1")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: what a user's systemd delegates is not marked")
	}
	h, err := cgroup.Detect()
	if err != nil || h.Mode() != cgroup.Unified {
		t.Skip("needs cgroup v2 alone")
	}
}

func limited(t *testing.T, g *cgroup.Group) {
	t.Helper()
	limit := int64(33)
	if _, err := g.Set(&specs.LinuxResources{Pids: &specs.LinuxPids{Limit: &limit}}); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(g.Directory("pids") + "/pids.max"); err != nil || string(text) != "33\n" {
		t.Errorf("pids.max is %s (%v)", text, err)
	}
}

func TestIsland(t *testing.T) {
	needSystemd(t)
	if os.Getenv(inUnit) != "" {
		island(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, delegate := range []string{"yes", "no"} {
		out, err := exec.Command("systemd-run", "--wait", "--pipe", "--quiet", "-p", "Delegate="+delegate, "--setenv="+inUnit+"="+delegate,
			self, "-test.run=^TestIsland$", "-test.v").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "PASS: TestIsland") {
			t.Errorf("Delegate=%s: %v\n%s", delegate, err, out)
		}
	}
}

// island is the test inside of the unit.
func island(t *testing.T) {
	h, err := cgroup.Detect()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := Island(h)
	if os.Getenv(inUnit) == "no" {
		if err == nil {
			t.Error("a unit that is not delegated became an island")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil || strings.TrimSpace(string(own)) != "0::"+tree.Path+"/supervisor" {
		t.Errorf("this process is in %s (%v)", own, err)
	}
	// Once more, as after a restart in place.
	if again, err := Island(h); err != nil || again.Path != tree.Path {
		t.Errorf("again: %+v, %v", again, err)
	}
	payload, err := tree.Payload("tasks")
	if err != nil {
		t.Fatal(err)
	}
	limited(t, payload)
	sleeper := start(t)
	if err := payload.Join(sleeper.Process.Pid); err != nil {
		t.Error(err)
	}
	if err := payload.Purge(); err != nil {
		t.Error(err)
	}
	_ = sleeper.Wait()
}

func start(t *testing.T) *exec.Cmd {
	t.Helper()
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTerritory(t *testing.T) {
	needSystemd(t)
	h, err := cgroup.Detect()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m := systemd.New(systemd.Options{})
	defer m.Close()
	place := unit.Place{Slice: "system.slice", Unit: fmt.Sprintf("placement-test-%d.scope", os.Getpid())}
	defer m.Stop(ctx, place.Unit)
	first, second := start(t), start(t)
	tree, err := Territory(ctx, m, h, place, first.Process.Pid, "one")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Territory(ctx, m, h, place, second.Process.Pid, "two")
	if err != nil || again.Path != tree.Path {
		t.Fatalf("the second payload: %+v, %v", again, err)
	}
	for pid, name := range map[int]string{first.Process.Pid: "one", second.Process.Pid: "two"} {
		if own, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)); err != nil || strings.TrimSpace(string(own)) != "0::"+tree.Path+"/payload-"+name {
			t.Errorf("%s is in %s (%v)", name, own, err)
		}
	}
	payload, err := tree.Payload("two")
	if err != nil {
		t.Fatal(err)
	}
	limited(t, payload)
	if err := m.Stop(ctx, place.Unit); err != nil {
		t.Error(err)
	}
	_, _ = first.Wait(), second.Wait()
	if _, err := os.Stat(payload.Directory("pids")); err == nil {
		t.Error("the scope's cgroup is still there")
	}
	if _, err := tree.Payload("../x"); err == nil {
		t.Error("a payload outside of the tree")
	}
	if _, err := Territory(ctx, m, h, unit.Place{Slice: "-.slice", Unit: "a.slice"}, os.Getpid(), "x"); err == nil {
		t.Error("a slice became a territory")
	}
}
