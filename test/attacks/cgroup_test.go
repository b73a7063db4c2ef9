package attacks

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// A container that has stopped has nobody in its cgroup. Another one that was put there since, or
// below it, is not ended by what is done to the first.
func TestStoppedContainerSparesOthers(t *testing.T) {
	harness.Hierarchies(t)
	for _, shared := range []bool{false, true} {
		for _, below := range []string{"", "/below"} {
			t.Run(fmt.Sprintf("shared-pids-%v-below-%v", shared, below != ""), func(t *testing.T) {
				b := harness.New(t)
				first := b.Container("/bin/true")
				if shared {
					harness.WithoutNamespace(first.Spec, specs.PIDNamespace)
				}
				first.RunDetached()
				first.WaitExit()
				second := b.Container("/inside", "hang")
				second.Spec.Linux.CgroupsPath = first.Spec.Linux.CgroupsPath + below
				second.RunDetached()
				lives := func(after string) {
					t.Helper()
					if s := second.State(); s.Status != "running" {
						t.Fatalf("after %s the other container is %s", after, s.Status)
					}
				}
				if !shared {
					first.Command("kill", nil, "KILL").Run().Fails(t, "not running")
					first.Command("kill", []string{"--all"}, "KILL").Run().OK(t) // as the other runtimes have it, with nobody to signal
					lives("kill")
				}
				first.Command("delete", nil).Run().Fails(t, "in use", strconv.Itoa(second.PID), "(inside)", "--force")
				lives("delete")
				b.Berth("gc").OK(t)
				lives("gc")
				first.Command("delete", []string{"--force"}).Run().OK(t).Warns(t, "in use", strconv.Itoa(second.PID), "(inside)")
				lives("delete --force")
				b.Berth("state", first.ID).Fails(t, "does not exist")
				second.Delete("--force")
				second.WaitExit()
				b.Berth("gc").OK(t)
				harness.Report(t, "attacks", 5)
			})
		}
	}
}

// The same of a container that runs, and is ended itself.
func TestEndOfAContainerSparesThoseBelow(t *testing.T) {
	harness.Hierarchies(t)
	for _, how := range [][]string{{"delete", "--force"}, {"kill", "--all"}} {
		b := harness.New(t)
		first := b.Container("/inside", "hang").RunDetached()
		second := b.Container("/inside", "hang")
		second.Spec.Linux.CgroupsPath = first.Spec.Linux.CgroupsPath + "/below"
		second.RunDetached()
		if how[0] == "kill" {
			first.Command("kill", how[1:], "KILL").Run().OK(t)
		} else {
			first.Command("delete", how[1:]).Run().OK(t)
		}
		first.WaitExit()
		if s := second.State(); s.Status != "running" {
			t.Errorf("after %v the container below is %s", how, s.Status)
		}
		second.Delete("--force")
		second.WaitExit()
		first.Command("delete", []string{"--force"}).Run().OK(t)
		b.Berth("gc").OK(t)
	}
	harness.Report(t, "attacks", 2)
}

// premade makes cgroups in all hierarchies, or in the first alone, and gives a check that they are
// still the same ones.
func premade(t *testing.T, hierarchies []harness.Hierarchy, paths ...string) (still func(after string)) {
	t.Helper()
	inodes := map[string]uint64{}
	for _, h := range hierarchies {
		for _, path := range paths {
			dir := filepath.Join(h.Dir, path)
			check(t, os.MkdirAll(dir, 0o755))
			info, err := os.Stat(dir)
			check(t, err)
			inodes[dir] = info.Sys().(*syscall.Stat_t).Ino
			t.Cleanup(func() { _ = unix.Rmdir(dir) })
		}
	}
	return func(after string) {
		t.Helper()
		for dir, ino := range inodes {
			info, err := os.Stat(dir)
			if err != nil {
				t.Errorf("after %s: %v", after, err)
			} else if info.Sys().(*syscall.Stat_t).Ino != ino {
				t.Errorf("after %s: %s is another one", after, dir)
			}
		}
	}
}

// A cgroup that was there before a container is there after it, whatever becomes of the container;
// what was made is gone.
func TestCgroupsThatWereThereStay(t *testing.T) {
	hierarchies := harness.Hierarchies(t)
	for name, list := range map[string][]harness.Hierarchy{"all": hierarchies, "one": hierarchies[:1]} {
		for _, deep := range []string{"", "/deep/deeper"} {
			t.Run(name+filepath.Base(deep), func(t *testing.T) {
				b := harness.New(t)
				path := "/" + b.Tag + "-there"
				paths := []string{path}
				if deep != "" {
					paths = append(paths, path+"/neighbour") // version 1 sets no rules for devices where there are children
				}
				still := premade(t, list, paths...)
				make := func(change func(s *specs.Spec)) *harness.Container {
					c := b.Container("/inside", "hang")
					c.Spec.Linux.CgroupsPath = path + deep
					change(c.Spec)
					return c
				}
				c := make(func(*specs.Spec) {}).RunDetached()
				c.Delete("--force")
				c.WaitExit()
				still("delete --force")
				c = make(func(s *specs.Spec) { s.Process.Args = []string{"/bin/true"} }).RunDetached()
				c.WaitExit()
				c.Delete()
				still("delete")
				for step, change := range map[string]func(s *specs.Spec){
					"a limit": func(s *specs.Spec) {
						limit := int64(1)
						s.Linux.Resources.Memory = &specs.LinuxMemory{Limit: &limit}
					},
					"a mount":  func(s *specs.Spec) { s.Mounts = append(s.Mounts, specs.Mount{Destination: "/x", Type: "nonsense"}) },
					"a hook":   func(s *specs.Spec) { s.Hooks = &specs.Hooks{CreateRuntime: []specs.Hook{{Path: "/bin/false"}}} },
					"its root": func(s *specs.Spec) { s.Root.Path = "nothing" },
					"program":  func(s *specs.Spec) { s.Process.Args = []string{"/nothing"} },
				} {
					if r := make(change).Run(); r.Code == 0 {
						t.Errorf("a container without %s runs", step)
					}
					still("a create that failed at " + step)
				}
				for i := range paths {
					for _, h := range list {
						check(t, unix.Rmdir(filepath.Join(h.Dir, paths[len(paths)-1-i])))
					}
				}
				harness.Report(t, "attacks", 7)
			})
		}
	}
}

// It stays when create is killed at any instant, too: what was there is on record before anything
// is made.
func TestCgroupsThatWereThereOutliveAKill(t *testing.T) {
	strace := harness.NeedTool(t, "strace", "strace")
	hierarchies := harness.Hierarchies(t)
	tried := 0
	for n, whole := 7, false; !whole && n < 2000; n += 13 {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			b := harness.New(t)
			path := "/" + b.Tag + "-there"
			still := premade(t, hierarchies[:1+n%2*(len(hierarchies)-1)], path)
			c := b.Container("/bin/true")
			c.Spec.Linux.CgroupsPath = path
			if n%4 < 2 {
				c.Spec.Linux.CgroupsPath += "/deep/deeper"
			}
			cmd := c.Command("create", nil)
			cmd.Wrap = []string{strace, "-D", "-f", "-qq", "-o", b.Path("trace"), "-e", fmt.Sprintf("inject=all:signal=KILL:when=%d", n)}
			whole = cmd.Run().Code == 0
			if fd, err := unix.Open(filepath.Join(b.Root, c.ID), unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
				for unix.Flock(fd, unix.LOCK_EX) == unix.EINTR { // its holder ends first
				}
				unix.Close(fd)
			}
			b.Berth("delete", "--force", c.ID).OK(t)
			b.ReapOrphans()
			still("a create that was killed")
			for _, h := range hierarchies {
				_ = unix.Rmdir(filepath.Join(h.Dir, path)) // all that is below has to be gone
			}
			tried++
		})
	}
	harness.Report(t, "attacks", tried)
}

// The kernel has files in each cgroup. One that is named like them can't be made, and what was made
// on the way there is removed again.
func TestCgroupNamedLikeAFile(t *testing.T) {
	hierarchies := harness.Hierarchies(t)
	for _, h := range hierarchies {
		for _, file := range map[bool][]string{true: {"cgroup.procs", "cgroup.type"}, false: {"tasks", "notify_on_release"}}[h.Unified] {
			for _, path := range []string{"/x/" + file, "/x/" + file + "/y"} {
				b := harness.New(t)
				c := b.Container("/bin/true")
				c.Spec.Linux.CgroupsPath = "/" + b.Tag + path
				c.Run().Fails(t, "/linux/cgroupsPath", file)
				b.Berth("cgroup", "create", "/"+b.Tag+path).Fails(t, file)
			}
		}
	}
}
