package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cgroup"
	"golang.org/x/sys/unix"
)

// testGroup makes a cgroup that is gone after the test.
func testGroup(t *testing.T, h *cgroup.Host, path string, options ...cgroup.Option) *cgroup.Group {
	t.Helper()
	g, err := h.Create(path, options...)
	if cgroup.Denied(err) {
		t.Skipf("no cgroup can be made here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Purge(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func testPlace(t *testing.T, h *cgroup.Host) string {
	t.Helper()
	base, err := h.Base()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s/berth-test-%d-%s", strings.TrimSuffix(base, "/"), os.Getpid(), t.Name())
}

func detect(t *testing.T) *cgroup.Host {
	t.Helper()
	h, err := cgroup.Detect()
	if err != nil {
		t.Fatal(err)
	}
	if h.Mode() == cgroup.None {
		t.Skip("no cgroup file system is mounted here")
	}
	return h
}

// startIn starts a process in a group that lasts as long as that.
func startIn(t *testing.T, g *cgroup.Group) int {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

func TestRemoveMade(t *testing.T) {
	host := detect(t)
	place := testPlace(t, host)
	used := testGroup(t, host, place+"/used", cgroup.WherePermitted())
	pid := startIn(t, used)
	if _, ok := removeMade(used.Made()); ok {
		t.Fatal("a group with a process in it is said to be removed")
	}
	if pids, err := used.AllProcs(); err != nil || !slices.Equal(pids, []int{pid}) {
		t.Fatalf("after that, processes %v, %v", pids, err)
	}
	free := testGroup(t, host, place+"/one/two", cgroup.WherePermitted())
	made := free.Made()
	if !madeAll(free) {
		t.Errorf("%q: not all of a new group is said to be made", made)
	}
	if left, ok := removeMade(made); !ok || len(left) > 0 {
		t.Fatalf("%q: not removed; left %q", made, left)
	}
	// Of the parents that were made the one goes, and not the other, which has become useful.
	if _, err := host.Open(place + "/one"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a parent that was made: %v", err)
	}
	if g, err := host.Open(used.Path()); err != nil {
		t.Errorf("a group beside: %v", err)
	} else {
		g.Close()
	}
	for _, none := range [][]string{made, nil} {
		if _, ok := removeMade(none); ok {
			t.Error("what is not there is said to be removed")
		}
	}
	again := testGroup(t, host, used.Path(), cgroup.Adopt(), cgroup.WherePermitted())
	if madeAll(again) {
		t.Error("a group that was there is said to be made")
	}
}

// The files on record say whether a group stands, whichever freezer holds it.
func TestFrozenBy(t *testing.T) {
	host := detect(t)
	g := testGroup(t, host, testPlace(t, host), cgroup.WherePermitted())
	startIn(t, g)
	files := freezers(g)
	if len(files) == 0 {
		t.Skip("there is no freezer here")
	}
	if on, err := frozenBy([]string{"/nowhere/cgroup.freeze"}); err == nil {
		t.Errorf("a file that can't be read says frozen %v", on)
	}
	check := func(when string, want bool) {
		t.Helper()
		if on, err := frozenBy(files); on != want || err != nil {
			t.Errorf("%s, by %q: frozen %v, %v", when, files, on, err)
		}
	}
	for _, h := range host.Hierarchies() {
		if h.Version == 1 && !h.Has("freezer") || g.Directory(h.String()) == "" {
			continue
		}
		one, err := host.Open(g.Path(), cgroup.Only(h.String()), cgroup.Made(g.Made()))
		if err != nil {
			t.Fatal(err)
		}
		check("before "+h.String(), false)
		if err := one.Freeze(); err != nil {
			t.Fatal(err)
		}
		check("frozen by "+h.String(), true)
		if err := one.Thaw(); err != nil {
			t.Fatal(err)
		}
		check("thawed by "+h.String(), false)
		one.Close()
	}
}

// A process with one thread enters all of version 1 by the tasks files.
func TestTasksFiles(t *testing.T) {
	host := detect(t)
	g := testGroup(t, host, testPlace(t, host), cgroup.WherePermitted())
	files := tasksFiles(g)
	out, err := exec.Command("sh", append([]string{"-c", `for f in "$@"; do echo 0 > "$f" || exit; done; cat /proc/self/cgroup`, "sh"}, files...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if in := strings.Count(string(out), ":"+g.Path()+"\n"); in != len(files) {
		t.Errorf("it entered %d of %q:\n%s", in, files, out)
	}
	v1 := 0
	for _, h := range host.Hierarchies() {
		if h.Version == 1 && unix.Access(g.Directory(h.String()), unix.F_OK) == nil {
			v1++
		}
	}
	if len(files) != v1 {
		t.Errorf("%d files for %d hierarchies of version 1", len(files), v1)
	}
}
