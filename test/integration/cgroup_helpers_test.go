package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// tool calls berth cgroup.
func tool(b *harness.Box, args ...string) harness.Result {
	b.T.Helper()
	return b.Berth(append([]string{"cgroup"}, args...)...)
}

// demo makes a cgroup in all hierarchies. At the end of the test it is removed, and what runs in it
// killed.
func demo(b *harness.Box) string {
	b.T.Helper()
	needCgroupTools(b)
	path := "/" + b.Tag
	tool(b, "create", path).OK(b.T)
	b.T.Cleanup(func() {
		tool(b, "create", path).OK(b.T) // a test may have removed it
		tool(b, "delete", "-r", "--kill", path).OK(b.T)
		b.ReapOrphans()
	})
	return path
}

// needCgroupTools skips the test with an engine that has none, as other runtimes.
func needCgroupTools(b *harness.Box) {
	b.T.Helper()
	if r := tool(b, "list", "--help"); r.Code != 0 {
		harness.Skip(b.T, "needs an engine with cgroup tools")
	}
}

// dirOf is the cgroup's directory in the hierarchy of a controller.
func dirOf(t *testing.T, controller, path string) string {
	t.Helper()
	return filepath.Join(harness.Controller(t, controller).Dir, path)
}

func fileOf(t *testing.T, controller, path, v1, v2 string) string {
	t.Helper()
	name := v1
	if harness.Controller(t, controller).Unified {
		name = v2
	}
	data, err := os.ReadFile(filepath.Join(dirOf(t, controller, path), name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// restoreEnabled takes back what a test enables for the children of the version 2 root.
func restoreEnabled(t *testing.T) {
	t.Helper()
	for _, h := range harness.Hierarchies(t) {
		if !h.Unified {
			continue
		}
		file := filepath.Join(h.Dir, "cgroup.subtree_control")
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			after, _ := os.ReadFile(file)
			for _, name := range strings.Fields(string(after)) {
				if !strings.Contains(" "+strings.TrimSpace(string(before))+" ", " "+name+" ") {
					// Another test's cgroup may use it meanwhile; then it stays.
					_ = os.WriteFile(file, []byte("-"+name), 0)
				}
			}
		})
	}
}
