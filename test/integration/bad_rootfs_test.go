package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

func TestRootfsMissing(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Root.Path = "nowhere"
	refused(t, c, "nowhere", "no such file or directory")
	c.Spec.Root.Path = "/no/where"
	refused(t, c, "/no/where", "no such file or directory")
	c.Spec.Root.Path = "rootfs/etc/passwd"
	refused(t, c, "rootfs/etc/passwd", "not a directory")
}

func TestRootfsWithoutFolders(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	for _, name := range []string{"proc", "sys", "dev"} {
		if err := os.RemoveAll(c.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
	harness.MountAt(t, c.Look(), "/dev/shm")
}

// A root file system may be any mount: shared, a tmpfs, an overlay.
func TestRootfsOnAMount(t *testing.T) {
	for _, kind := range []string{"shared", "private", "bind"} {
		t.Run(kind, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container()
			source := c.Rootfs()
			mount(t, source, source, "", unix.MS_BIND, "")
			if kind == "shared" {
				mount(t, "", source, "", unix.MS_SHARED, "")
			}
			if kind == "private" {
				mount(t, "", source, "", unix.MS_PRIVATE, "")
			}
			harness.MountAt(t, c.Look(), "/proc")
		})
	}
	t.Run("overlay", func(t *testing.T) {
		harness.NeedFilesystem(t, "overlay")
		b := harness.New(t)
		c := b.Container()
		for _, name := range []string{"upper", "work", "merged"} {
			if err := os.Mkdir(b.Path(name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		mount(t, "overlay", b.Path("merged"), "overlay", 0, "lowerdir="+c.Rootfs()+",upperdir="+b.Path("upper")+",workdir="+b.Path("work"))
		c.Spec.Root.Path = b.Path("merged")
		harness.Allowed(t, c.Try("create=/new"), "create=/new")
		if _, err := os.Stat(b.Path("upper/new")); err != nil {
			t.Error(err)
		}
	})
}

func TestRootfsIsALink(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	if err := os.Rename(c.Rootfs(), c.Dir+"/real"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", c.Rootfs()); err != nil {
		t.Fatal(err)
	}
	harness.MountAt(t, c.Look(), "/proc")
}

// A bundle's path may hold anything that a path may hold.
func TestBundlePaths(t *testing.T) {
	for _, name := range []string{"with space", "new\nline", `back\slash`, "comma,colon:", "ümläut", "--dash", `quote"s'`, "percent%s", "#hash", "tab\there"} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/cat", "/etc/note")
			c.WriteFile("etc/note", "read", 0o644)
			c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/bound", Type: "bind", Source: "extra", Options: []string{"bind"}})
			dir := filepath.Join(b.Dir, name)
			if err := os.Rename(c.Dir, dir); err != nil {
				t.Fatal(err)
			}
			c.Dir = dir
			if err := os.Mkdir(filepath.Join(dir, "extra"), 0o755); err != nil {
				t.Fatal(err)
			}
			if r := c.Run().OK(t); r.Stdout != "read" {
				t.Errorf("stdout %q", r.Stdout)
			}
			c.Create()
			if s := c.State(); s.Bundle != dir {
				t.Errorf("bundle %q, want %q", s.Bundle, dir)
			}
			var list []harness.State
			harness.Decode(t, b.Berth("list", "-f", "json").OK(t).Stdout, &list)
			if len(list) != 1 || list[0].Bundle != dir {
				t.Errorf("%+v", list)
			}
		})
	}
}

// An error about such a path stays one line.
func TestErrorsOfBundlePathsAreOneLine(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Root.Path = "two\nlines"
	r := c.Run().Fails(t, "no such file or directory")
	if strings.Count(r.Stderr, "\n") != 1 {
		t.Errorf("%q", r.Stderr)
	}
}

// mount mounts for the time of the test.
func mount(t *testing.T, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		t.Fatalf("mount %s on %s: %v", source, target, err)
	}
	if source != "" {
		t.Cleanup(func() {
			if err := unix.Unmount(target, 0); err != nil {
				t.Errorf("unmount %s: %v", target, err)
			}
		})
	}
}
