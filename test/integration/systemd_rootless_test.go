package integration

import (
	"os"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// An ordinary user's limits bite: the kernel acts on them, and not only shows them.
func TestRootlessLimitsBite(t *testing.T) {
	if os.Geteuid() == 0 {
		harness.Skip(t, "needs to be run by an ordinary user")
	}
	b := withSystemd(t)
	needV2(t)
	t.Run("memory", func(t *testing.T) {
		c, _ := unitContainer(b, "/inside", "try", "memory=268435456")
		c.Spec.Linux.Resources.Memory = &specs.LinuxMemory{Limit: ptr(int64(48 << 20)), Swap: ptr(int64(48 << 20))}
		if r := c.Run(); r.Code != 128+9 {
			t.Errorf("it ended with %d: %s %s", r.Code, r.Stdout, r.Stderr)
		}
	})
	t.Run("pids", func(t *testing.T) {
		c, _ := unitContainer(b, "/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; echo all; kill -9 -1")
		c.Spec.Linux.Resources.Pids = &specs.LinuxPids{Limit: ptr(int64(5))}
		if r := c.Run(); strings.Contains(r.Stdout, "all") || !strings.Contains(r.Stderr, "fork") {
			t.Errorf("%d: %q %q", r.Code, r.Stdout, r.Stderr)
		}
	})
	t.Run("cpu", func(t *testing.T) {
		c, unit := unitContainer(b, "/bin/sh", "-c", "while :; do :; done")
		c.Spec.Linux.Resources.CPU = &specs.LinuxCPU{Quota: ptr(int64(10000)), Period: ptr(uint64(100000))}
		c.RunDetached()
		wait.Until(t, "the kernel throttles it", func() bool {
			return !strings.Contains(unitFile(t, unit, "cpu", "cpu.stat", "cpu.stat")+"\n", "nr_throttled 0\n")
		})
	})
}

// What nobody has delegated is refused by its name.
func TestRootlessUndelegated(t *testing.T) {
	if os.Geteuid() == 0 {
		harness.Skip(t, "needs to be run by an ordinary user")
	}
	b := withSystemd(t)
	c, _ := unitContainer(b, "/bin/true")
	c.Spec.Linux.Resources.HugepageLimits = []specs.LinuxHugepageLimit{{Pagesize: "2MB", Limit: 1 << 21}}
	if r := c.Run(); r.Code == 0 || !strings.Contains(r.Stderr, "/linux/resources/hugepageLimits/0") {
		t.Errorf("%d: %s", r.Code, r.Stderr)
	}
}
