package attacks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// A payload that may write to its cgroup moves itself to one below it, and freezes that: version
// 1's freezer keeps even a SIGKILL from it. One that has a helper freezes it again each time that
// it is thawed.
func TestPayloadFreezesItself(t *testing.T) {
	hierarchies := harness.Hierarchies(t)
	i := slices.IndexFunc(hierarchies, func(h harness.Hierarchy) bool { return !h.Unified && filepath.Base(h.Dir) == "freezer" })
	if i < 0 {
		harness.Skip(t, "needs cgroup v1's freezer")
	}
	scripts := map[string]string{
		"itself":     "mkdir sub && cd sub && echo 1 > cgroup.procs && echo frozen && echo FROZEN > freezer.state",
		"deeper":     "mkdir -p sub/a/b && echo 1 > sub/a/b/cgroup.procs && echo frozen && echo FROZEN > sub/freezer.state && echo FROZEN > sub/a/b/freezer.state",
		"once again": "mkdir sub; echo frozen; (while true; do echo FROZEN > sub/freezer.state; done) & echo 1 > sub/cgroup.procs; while true; do :; done",
	}
	for name, script := range scripts {
		for _, end := range [][]string{{"delete", "--force"}, {"kill"}} {
			t.Run(strings.ReplaceAll(name, " ", "-")+"-"+end[0], func(t *testing.T) {
				b := harness.New(t)
				c := b.Container("/bin/sh", "-c", "cd /sys/fs/cgroup/freezer && "+script)
				c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "nodev", "noexec"}})
				out, w := b.Pipe()
				c.Stdout = w
				c.RunDetached()
				w.Close()
				out.Until("frozen\n")
				state := filepath.Join(hierarchies[i].Dir, c.ID, "sub/freezer.state")
				for begin := time.Now(); ; time.Sleep(time.Millisecond) {
					if text, err := os.ReadFile(state); err == nil && strings.HasPrefix(string(text), "FR") {
						break
					} else if time.Since(begin) > harness.Deadline {
						t.Fatalf("it is not frozen: %q, %v", text, err)
					}
				}
				begin := time.Now()
				if end[0] == "kill" {
					c.Kill("KILL")
				} else {
					c.Delete(end[1:]...)
				}
				c.WaitExit()
				if took := time.Since(begin); took > 20*time.Second {
					t.Errorf("it took %v", took)
				}
				c.Delete("--force")
				harness.Report(t, "attacks", 1)
			})
		}
	}
}
