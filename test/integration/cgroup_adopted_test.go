package integration

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// A cgroup that is there when its container comes.
func adopted(t *testing.T, b *harness.Box, c *harness.Container, in func(harness.Hierarchy) bool) (dirs []string) {
	t.Helper()
	c.Spec.Linux.CgroupsPath = "/" + b.Tag + "-there"
	for _, h := range harness.Hierarchies(t) {
		if !in(h) {
			continue
		}
		dir := filepath.Join(h.Dir, c.Spec.Linux.CgroupsPath)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { // one hierarchy may be mounted twice
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(dir) })
		dirs = append(dirs, dir)
	}
	return dirs
}

func stillThere(t *testing.T, dirs []string) {
	t.Helper()
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("what was there before the container is gone: %v", err)
		}
	}
}

func everywhere(harness.Hierarchy) bool { return true }

// What a container has not made it does not delete.
func TestDeleteLeavesACgroupThatWasThere(t *testing.T) {
	for name, in := range map[string]func(harness.Hierarchy) bool{
		"everywhere":       everywhere,
		"in one hierarchy": func(h harness.Hierarchy) bool { return h.Unified },
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/sh", "-c", "sleep 1000 & sleep 1000")
			dirs := adopted(t, b, c, in)
			c.RunDetached()
			c.Delete("--force")
			c.WaitExit()
			stillThere(t, dirs)
			for _, dir := range b.Cgroups() {
				if data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs")); err != nil || len(data) > 0 {
					t.Errorf("%s has processes: %q, %v", dir, data, err)
				}
			}
			// A start that fails leaves it as well.
			c.Spec.Process.Args = []string{"/no/such/program"}
			c.TryCreate().Fails(t)
			stillThere(t, dirs)
			for _, dir := range dirs {
				os.Remove(dir)
			}
			if left := b.Cgroups(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A frozen cgroup is refused at once, on whatever version it is, and stays.
func TestRunIntoAFrozenCgroup(t *testing.T) {
	for _, unified := range []bool{true, false} {
		b := harness.New(t)
		c := b.Container("/bin/true")
		dirs := adopted(t, b, c, everywhere)
		file, value, back := "cgroup.freeze", "1", "0"
		if !unified {
			file, value, back = "freezer.state", "FROZEN", "THAWED"
		}
		frozen := ""
		for _, dir := range dirs {
			if name := filepath.Join(dir, file); unix.Access(name, unix.W_OK) == nil {
				frozen = name
			}
		}
		if frozen == "" {
			continue
		}
		if err := os.WriteFile(frozen, []byte(value), 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.WriteFile(frozen, []byte(back), 0) })
		for _, wrap := range [][]string{nil, withoutUnified(t)} {
			if wrap != nil && unified {
				continue
			}
			b.Wrap = wrap
			began := time.Now()
			c.Run().Fails(t, "frozen", filepath.Dir(frozen))
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
			stillThere(t, dirs)
		}
		b.Wrap = nil
	}
}

// withoutUnified runs the engine where only cgroup v1 is mounted.
func withoutUnified(t *testing.T) []string {
	for _, h := range harness.Hierarchies(t) {
		if h.Unified && h.Dir != "/sys/fs/cgroup" {
			return []string{"unshare", "--mount", "--propagation", "private", "sh", "-c", `umount "$0" && exec "$@"`, h.Dir}
		}
	}
	return nil
}
