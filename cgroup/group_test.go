package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"testing"
)

func TestCreateMakesEveryDirectoryAndDestroyRemovesThem(t *testing.T) {
	host := hostForTest(t)
	top := testPath()
	g, err := host.Create(top + "/a/b")
	if err != nil {
		t.Fatal(err)
	}
	made := g.Made()
	if want := 3 * len(host.Hierarchies()); len(made) != want {
		t.Errorf("%d directories made, want %d: %q", len(made), want, made)
	}
	for _, dir := range made {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if err := g.Destroy(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range made {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there (%v)", dir, err)
		}
	}
	if err := g.Destroy(); err != nil {
		t.Errorf("the second time: %v", err)
	}
}

func TestCreateAdoptsWhatIsThere(t *testing.T) {
	host := hostForTest(t)
	g := makeGroup(t, host)
	again, err := host.Create(g.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if len(again.Made()) != 0 {
		t.Errorf("made %q", again.Made())
	}
	if err := again.Destroy(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(g.Made()[0]); err != nil {
		t.Errorf("a group that was adopted was removed: %v", err)
	}
	// What it writes into it, it does only with the record of the maker.
	if err := again.Freeze(); host.privileged() && (!errors.Is(err, ErrNotOwner) || !errors.Is(err, fs.ErrPermission)) {
		t.Errorf("freeze of another's group: %v", err)
	}
	again.Thaw()
	mine, err := host.Open(g.Path(), Made(g.Made()))
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	if !slices.Equal(mine.Made(), g.Made()) {
		t.Errorf("record says %q, want %q", mine.Made(), g.Made())
	}
	if err := mine.Freeze(); err != nil {
		t.Error(err)
	}
	if err := mine.Thaw(); err != nil {
		t.Error(err)
	}
}

func TestOpenWhatIsNotThere(t *testing.T) {
	host := hostForTest(t)
	if _, err := host.Open(testPath()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestOnly(t *testing.T) {
	host := hostForTest(t)
	h := host.Hierarchies()[0]
	name := h.String()
	if len(h.Controllers) > 0 {
		name = h.Controllers[0]
	}
	g := makeGroup(t, host, Only(name))
	if len(g.Made()) != 1 || g.Directory(name) != g.Made()[0] {
		t.Errorf("made %q, directory %q", g.Made(), g.Directory(name))
	}
	if _, err := host.Create(testPath(), Only("nonsense")); !errors.Is(err, ErrNoController) {
		t.Errorf("a controller that nobody has: %v", err)
	}
}

func TestFilesAndChildren(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "pids")
	g := makeGroup(t, host)
	for _, name := range []string{"b", "a"} {
		child, err := host.Create(g.Path() + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		child.Close()
	}
	if names, err := g.Children(); err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("children %q, %v", names, err)
	}
	if err := g.WriteFile("pids.max", "17"); err != nil {
		t.Fatal(err)
	}
	if got, err := g.ReadFile("pids.max"); got != "17" || err != nil {
		t.Errorf("pids.max is %q, %v", got, err)
	}
	if names, err := g.Files("pids"); err != nil || !slices.Contains(names, "pids.max") || slices.Contains(names, "a") {
		t.Errorf("files %q, %v", names, err)
	}
	if _, err := g.ReadFile("cgroup.procs"); err != nil {
		t.Error(err)
	}
	if h := host.Controller("pids"); h.Version == 1 {
		if err := g.WriteFile("notify_on_release", "0"); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "..", "../pids.max", "a/pids.max", "nonsense.max"} {
		if _, err := g.ReadFile(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
		if err := g.WriteFile(bad, "1"); err == nil {
			t.Errorf("%q was written", bad)
		}
	}
	if err := g.WriteFile("pids.max", "many"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a wrong value: %v", err)
	}
	other, err := host.Open(g.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.WriteFile("pids.max", "3"); host.privileged() && !errors.Is(err, ErrNotOwner) {
		t.Errorf("another's file: %v", err)
	}
}

func TestCreateUndoesItself(t *testing.T) {
	host := hostForTest(t)
	path := testPath()
	// A name that version 1 takes on no hierarchy: a kernel file's.
	if _, err := host.Create(path + "/cgroup.procs/x"); err == nil {
		t.Fatal("a group below a file was made")
	}
	if left := leftGroups(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestCpusetInherits(t *testing.T) {
	host := hostForTest(t)
	h := need(t, host, "cpuset")
	if h.Version != 1 {
		t.Skip("version 2 cpusets need no values")
	}
	g, err := host.Create(testPath() + "/a/b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroup(t, g) })
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		want, err := os.ReadFile(h.Mountpoint + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(g.Directory("cpuset") + "/" + file)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s is %q, %v; want %q", file, got, err, want)
		}
	}
}
