package integration

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// Whatever is done to a container is done to its cgroup, so two can't share one.
func TestCgroupInUse(t *testing.T) {
	b := harness.New(t)
	first := b.Container("/inside", "hang").RunDetached()
	second := b.Container("/bin/true")
	second.Spec.Linux.CgroupsPath = first.Spec.Linux.CgroupsPath
	second.Run().Fails(t, "/linux/cgroupsPath", "in use")
	if got := first.State().Status; got != "running" {
		t.Errorf("the first container is %s after that", got)
	}
	first.Delete("--force")
}

// A parent that was made for the first container of a pod goes with the last one, whichever that
// is, and one that was there stays.
func TestCgroupParentOfSeveral(t *testing.T) {
	b := harness.New(t)
	var dirs []string
	for _, h := range harness.Hierarchies(t) {
		dirs = append(dirs, filepath.Join(h.Dir, b.Tag+"-pod"))
	}
	exist := func(dirs ...string) (n int) {
		for _, dir := range dirs {
			if _, err := os.Stat(dir); err == nil {
				n++
			}
		}
		return n
	}
	for _, there := range []bool{true, false} {
		for _, dir := range dirs {
			if !there {
				os.Remove(dir)
			} else if err := os.Mkdir(dir, 0o755); err != nil {
				harness.Skip(t, "needs to make cgroups: %v", err)
			} else {
				t.Cleanup(func() { os.Remove(dir) })
			}
		}
		var list []*harness.Container
		for range 3 {
			c := b.Container("/inside", "hang")
			c.Spec.Linux.CgroupsPath = "/" + b.Tag + "-pod/" + c.ID
			list = append(list, c.RunDetached())
		}
		if exist(dirs...) != len(dirs) {
			t.Fatalf("%d of %d hierarchies have the parent", exist(dirs...), len(dirs))
		}
		list[0].Delete("--force")
		list[2].Delete("--force")
		if exist(dirs...) == 0 {
			t.Error("the parent is gone with a container in it")
		}
		list[1].Delete("--force")
		if n := exist(dirs...); there && n != len(dirs) || !there && n != 0 {
			t.Errorf("%d of %d hierarchies have the parent, which was there before: %v", n, len(dirs), there)
		}
	}
}
