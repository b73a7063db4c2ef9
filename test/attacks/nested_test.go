package attacks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// dig makes cgroups in each other, as a payload can that may write to its own, beyond what a path
// can name.
func dig(t *testing.T, dir, name string, depth int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	check(t, err)
	for range depth {
		check(t, unix.Mkdirat(at, name, 0o755))
		down, err := unix.Openat(at, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		check(t, err)
		unix.Close(at)
		at = down
	}
	unix.Close(at)
	t.Cleanup(func() { fill(dir, name) })
}

// fill removes what is left of them.
func fill(dir, name string) {
	at, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	depth := 0
	for err == nil {
		var down int
		if down, err = unix.Openat(at, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
			unix.Close(at)
			at = down
			depth++
		}
	}
	defer func() { unix.Close(at) }()
	for ; depth > 0; depth-- {
		up, err := unix.Openat(at, "..", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return
		}
		unix.Close(at)
		at = up
		if err := unix.Unlinkat(at, name, unix.AT_REMOVEDIR); err != nil {
			return
		}
	}
	_ = unix.Rmdir(dir)
}

// A payload nests cgroups below its own. What is done to it takes no more descriptors for that, and
// what looks at all cgroups of the host goes on.
func TestNestedCgroups(t *testing.T) {
	hierarchies := harness.Hierarchies(t)
	for _, test := range []struct {
		about, name string
		depth       int
		looks       [][]string // at all cgroups
	}{
		{"1500", "d", 1500, nil},
		{"longer than a path", strings.Repeat("n", 60), 120, [][]string{{"cgroup", "tree"}, {"cgroup", "list"}, {"cgroup", "controllers"}, {"top", "--json"}}},
	} {
		t.Run(strings.ReplaceAll(test.about, " ", "-"), func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/inside", "hang").RunDetached()
			for _, h := range hierarchies {
				if h.Unified || filepath.Base(h.Dir) == "freezer" {
					dig(t, filepath.Join(h.Dir, c.ID), test.name, test.depth)
				}
			}
			few := func(args ...string) harness.Result {
				t.Helper()
				call := b.Command(args...)
				call.Wrap = []string{"/bin/sh", "-c", `ulimit -n 100 && exec "$@"`, "sh"}
				return call.Run()
			}
			for _, args := range append(test.looks, []string{"ps", c.ID}, []string{"pause", c.ID}, []string{"resume", c.ID}) {
				few(args...).OK(t)
			}
			few("kill", "--all", c.ID, "TERM").OK(t)
			few("delete", "--force", c.ID).OK(t)
			c.WaitExit()
			for _, h := range hierarchies {
				if _, err := os.Stat(filepath.Join(h.Dir, c.ID)); err == nil {
					t.Errorf("left: %s", filepath.Join(h.Dir, c.ID))
				}
			}
			harness.Report(t, "attacks", 5+len(test.looks))
		})
	}
}
