package integration

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// A container whose cgroup is frozen while it is made can't go on, and nobody would thaw it: run
// fails, and says so.
func TestCreateInFrozenCgroup(t *testing.T) {
	b := harness.New(t)
	all := harness.Hierarchies(t)
	i := slices.IndexFunc(all, func(h harness.Hierarchy) bool { return h.Unified })
	if i < 0 {
		harness.Skip(t, "needs cgroup v2, if only beside v1")
	}
	c := b.Container("/bin/true")
	freeze := "echo 1 > " + filepath.Join(all[i].Dir, c.Spec.Linux.CgroupsPath, "cgroup.freeze")
	c.Spec.Hooks = &specs.Hooks{CreateRuntime: []specs.Hook{{Path: "/bin/sh", Args: []string{"sh", "-c", freeze}}}}
	if r := c.Run(); r.Code == 0 || !strings.Contains(r.Stderr, "frozen") {
		t.Errorf("%d %s", r.Code, r.Stderr)
	}
}
