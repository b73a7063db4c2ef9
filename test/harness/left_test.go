package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// What is run behind all tests finds a cgroup that one of them has left, and none of a test that
// runs.
func TestLeftCgroups(t *testing.T) {
	const script = "../../build/scripts/left"
	if _, err := os.Stat(script); err != nil {
		Skip(t, "needs the source tree beside the tests: %v", err)
	}
	if os.Geteuid() != 0 {
		Skip(t, "needs root")
	}
	known := filepath.Join(t.TempDir(), "known")
	before, err := exec.Command(script, "--list").Output()
	if err == nil {
		err = os.WriteFile(known, before, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	top := Hierarchies(t)[0].Dir
	pid := strconv.Itoa(os.Getpid())
	for name, found := range map[string]bool{"berth-left": true, "of-no-one": true, "berth-test-" + pid + "-1": false} {
		dir := filepath.Join(top, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(script, known).Output()
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
		if said := strings.Contains("\n"+string(out), "\n"+dir+"\n"); said != found || found && err == nil {
			t.Errorf("with %s it says %q, %v", dir, out, err)
		}
	}
}
