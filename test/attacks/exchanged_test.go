package attacks

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
	"github.com/berth-runtime/berth/test/inside/view"
)

// movable are the directories of a root that something is mounted on, and that whoever writes to
// the same root can exchange for others.
var movable = []string{"proc", "sys", "dev", "data", "dev/pts", "copied"}

// movedContainer has mounts at all of them, and below each mount what is to be masked, read-only,
// or made.
func movedContainer(b *harness.Box) *harness.Container {
	b.T.Helper()
	c := b.Container()
	for _, name := range movable {
		check(b.T, os.MkdirAll(c.Path(name), 0o755))
		check(b.T, os.MkdirAll(c.Path(name+".other"), 0o755))
	}
	c.WriteFile("copied/file", "the image's", 0o644)
	volume := b.Path("volume")
	makeTree(b.T, volume, map[string]string{"secret": "secret", "dark/file": "dark", "fixed/file": "fixed", "linked/file": "linked"}, []string{"work"})
	check(b.T, os.Symlink("linked", filepath.Join(volume, "link")))
	c.Spec.Mounts = append(c.Spec.Mounts, bind("/data", volume), bind("/data/made", b.Path("volume/dark")),
		specs.Mount{Destination: "/copied", Type: "tmpfs", Source: "tmpfs", Options: []string{"tmpcopyup"}})
	c.Spec.Linux.MaskedPaths = append(c.Spec.Linux.MaskedPaths, "/data/secret", "/data/dark")
	c.Spec.Linux.ReadonlyPaths = append(c.Spec.Linux.ReadonlyPaths, "/data/fixed", "/data/link")
	c.Spec.Linux.Sysctl = map[string]string{"kernel.domainname": "by.sysctl"}
	c.Spec.Process.Cwd = "/data/work"
	c.Spec.Process.Args = []string{"/inside", "look"}
	return c
}

// guarded looks at the mounts of a container: whatever its mounts are called by now, all that was
// to be covered below them is.
func guarded(t *testing.T, v *view.View) {
	t.Helper()
	for _, m := range v.Mounts {
		var want map[string]string // what lies below, and a word of its options
		switch {
		case m.Type == "proc" && m.Root == "/":
			want = map[string]string{"sys": "ro", "kcore": "", "keys": "", "irq": "ro", "sysrq-trigger": "ro"}
		case m.Type == "sysfs" && m.Root == "/":
			want = map[string]string{"firmware": "ro"}
		case strings.HasSuffix(m.Root, "/volume"):
			want = map[string]string{"secret": "", "dark": "ro", "fixed": "ro", "linked": "ro", "made": ""}
		}
		for name, option := range want {
			if host, ok := map[string]string{"proc": "/proc/", "sysfs": "/sys/"}[m.Type]; ok {
				if _, err := os.Stat(host + name); err != nil {
					continue // this kernel has no such file
				}
			}
			// By number: the names change while the table is read.
			i := slices.IndexFunc(v.Mounts, func(over view.Mount) bool { return over.Parent == m.ID && filepath.Base(over.Target) == name })
			if i < 0 {
				t.Errorf("nothing is mounted on %s of %s", name, m.Target)
			} else if options := v.Mounts[i].Options; option != "" && !slices.Contains(options, option) {
				t.Errorf("%s of %s has the options %q, want %s", name, m.Target, options, option)
			}
		}
	}
}

// A hook exchanges the directories between the mounting and the masking: what a name leads to then
// is empty, and a mask that is taken for needless there leaves the real one open.
func TestRootIsExchangedBeforeTheMasking(t *testing.T) {
	for _, name := range movable {
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			b := harness.New(t)
			c := movedContainer(b)
			at := c.Path(name)
			c.Spec.Hooks = &specs.Hooks{CreateRuntime: []specs.Hook{{Path: "/bin/sh",
				Args: []string{"sh", "-c", fmt.Sprintf("mv %[1]s %[1]s.moved && mv %[1]s.other %[1]s", at)}}}}
			// It was one of the root's directories that was the working directory, and not the
			// volume's.
			c.WriteFile("data.other/work/wrong", "", 0o644)
			c.Spec.Process.Args = []string{"/bin/sleep", "100"}
			c.Create()
			// Back in its place it is what the container sees.
			check(t, os.Rename(at, at+".other"))
			check(t, os.Rename(at+".moved", at))
			c.Start()
			v := harness.ParseView(t, c.Exec(nil, "/inside", "look").OK(t).Stdout)
			guarded(t, v)
			if len(v.Mounts) == 0 || v.Domain != "by.sysctl" {
				t.Errorf("%d mounts, the domain name is %q", len(v.Mounts), v.Domain)
			}
			if cwd, err := os.Stat(fmt.Sprintf("/proc/%d/cwd/wrong", c.PID)); err == nil {
				t.Errorf("the working directory is the one that has %s", cwd.Name())
			}
			c.Kill("KILL")
			c.WaitExit()
			c.Delete()
		})
	}
}

// A neighbour with the same root exchanges them all the time.
func TestRootIsExchangedAllTheTime(t *testing.T) {
	b := harness.New(t)
	c := movedContainer(b)
	var made, refused int
	var swaps int64
	for _, names := range [][]string{{"proc"}, {"sys"}, {"dev"}, {"data"}, movable} {
		s := exchange(c.Rootfs(), names)
		for range 20 {
			if r := c.Run(); r.Code != 0 {
				refused++
				r.Fails(t)
			} else {
				made++
				guarded(t, harness.ParseView(t, r.Stdout))
			}
		}
		s.stop.Store(true)
		check(t, <-s.ended)
		swaps += s.swaps.Load()
	}
	if made < 40 || swaps < 1000 {
		t.Errorf("%d containers were made and %d refused, in %d swaps: the race was too hard or too easy", made, refused, swaps)
	}
	harness.Report(t, "swaps", swaps, "containers made", made, "refused", refused)
}

// exchange begins to exchange each directory with the other one that stands beside it.
func exchange(root string, names []string) *swapper {
	s := &swapper{ended: make(chan error, 1)}
	for _, name := range names {
		s.pairs = append(s.pairs, [2]string{filepath.Join(root, name), filepath.Join(root, name+".other")})
	}
	go func() { s.ended <- s.run() }()
	return s
}

// A masked file that is itself what was mounted.
func TestMountedFileIsMasked(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	b.WriteFile("file", "secret", 0o644)
	c.Spec.Mounts = append(c.Spec.Mounts, bind("/etc/file", b.Path("file")), bind("/etc/fixed", b.Path("file")))
	c.Spec.Linux.MaskedPaths = append(c.Spec.Linux.MaskedPaths, "/etc/file")
	c.Spec.Linux.ReadonlyPaths = append(c.Spec.Linux.ReadonlyPaths, "/etc/fixed")
	got := c.Try("read=/etc/file", "write=/etc/fixed,changed")
	if text := got["read=/etc/file"].Result; text != "" {
		t.Errorf("the masked file has %q", text)
	}
	harness.Refused(t, got, "write=/etc/fixed,changed", unix.ErrnoName(unix.EROFS))
}
