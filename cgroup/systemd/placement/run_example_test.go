package placement_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cgroup"
)

// What the examples print depends on the machine, so that go test compiles them only. Here each is
// run where it belongs: in a service of systemd, one that is delegated for the island.
func TestExamples(t *testing.T) {
	const inUnit = "PLACEMENT_EXAMPLE"
	examples := map[string]func(){"yes": ExampleIsland, "no": ExampleTerritory}
	if run := examples[os.Getenv(inUnit)]; run != nil {
		run()
		return
	}
	if h, err := cgroup.Detect(); err != nil || h.Mode() != cgroup.Unified || os.Geteuid() != 0 {
		t.Skip("needs root, and cgroup v2 alone")
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		t.Skip("needs systemd as process 1")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for delegate, want := range map[string]string{
		"yes": "/payload-web has 1 of 100 processes\n",
		"no":  "/system.slice/fleet.scope has payload-one and payload-two\n",
	} {
		out, err := exec.Command("systemd-run", "--wait", "--pipe", "--quiet", "-p", "Delegate="+delegate, "--setenv="+inUnit+"="+delegate,
			self, "-test.run=^TestExamples$").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("Delegate=%s: %v\n%s\nwant %s", delegate, err, out, want)
		}
	}
}
