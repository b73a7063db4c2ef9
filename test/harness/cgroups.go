package harness

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/inside/view"
)

// A Hierarchy is a mounted cgroup hierarchy of the host.
type Hierarchy struct {
	Dir         string
	Unified     bool
	Controllers []string
}

// Hierarchies are the host's.
func Hierarchies(t testing.TB) []Hierarchy {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var found []Hierarchy
	for _, m := range view.ParseMountinfo(string(text)) {
		switch m.Type {
		case "cgroup":
			found = append(found, Hierarchy{Dir: m.Target, Controllers: m.Super})
		case "cgroup2":
			list, _ := os.ReadFile(filepath.Join(m.Target, "cgroup.controllers"))
			found = append(found, Hierarchy{Dir: m.Target, Unified: true, Controllers: strings.Fields(string(list))})
		}
	}
	return found
}

// Controller returns the hierarchy in which a controller lives, and skips the test where it is
// nowhere.
func Controller(t testing.TB, name string) Hierarchy {
	t.Helper()
	for _, h := range Hierarchies(t) {
		if slices.Contains(h.Controllers, name) {
			return h
		}
	}
	Skip(t, "needs the cgroup controller %s", name)
	return Hierarchy{}
}

// CgroupFile reads a file of the container's cgroup: v1 or v2 by the name, whichever the host has
// the controller in.
func (c *Container) CgroupFile(controller, v1, v2 string) string {
	c.Box.T.Helper()
	h, name := Controller(c.Box.T, controller), v1
	if h.Unified {
		name = v2
	}
	data, err := os.ReadFile(filepath.Join(h.Dir, c.Spec.Linux.CgroupsPath, name))
	c.Box.must(err)
	return strings.TrimSpace(string(data))
}

// Cgroups are the directories of all hierarchies whose name has the test's tag.
func (b *Box) Cgroups() []string {
	b.T.Helper()
	var found []string
	for _, h := range Hierarchies(b.T) {
		filepath.WalkDir(h.Dir, func(path string, e fs.DirEntry, err error) error {
			// Other cgroups come and go meanwhile: what can't be read isn't of this test.
			if err == nil && e.IsDir() && strings.Contains(path, b.Tag) {
				found = append(found, path)
			}
			return nil
		})
	}
	return found
}

func (b *Box) leakedCgroups() {
	b.T.Helper()
	for _, dir := range slices.Backward(b.Cgroups()) {
		b.T.Errorf("left behind: cgroup %s", dir)
		if err := unix.Rmdir(dir); err != nil {
			b.T.Errorf("remove cgroup %s: %v", dir, err)
		}
	}
}
