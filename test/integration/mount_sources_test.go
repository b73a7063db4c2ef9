package integration

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// mountForTest mounts something on the host, until the test ends.
func mountForTest(t *testing.T, source, target, kind, data string) {
	t.Helper()
	if err := os.MkdirAll(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(source, target, kind, 0, data); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(target, 0); err != nil {
			t.Error(err)
		}
	})
}

// Each option of the specification's table that is an attribute of a mount, alone and over a tree.
func TestMountAttributes(t *testing.T) {
	b := harness.New(t)
	mountForTest(t, "tmpfs", b.Path("tree"), "tmpfs", "")
	mountForTest(t, "tmpfs", b.Path("tree/below"), "tmpfs", "")
	attributes := []struct {
		option        string
		have, haveNot string
	}{
		{"ro", "ro", "rw"}, {"rw", "rw", "ro"},
		{"nosuid", "nosuid", ""}, {"suid", "", "nosuid"},
		{"nodev", "nodev", ""}, {"dev", "", "nodev"},
		{"noexec", "noexec", ""}, {"exec", "", "noexec"},
		{"noatime", "noatime", "relatime"}, {"relatime", "relatime", "noatime"}, {"strictatime", "", "relatime"},
		{"nodiratime", "nodiratime", ""}, {"diratime", "", "nodiratime"},
		{"nosymfollow", "nosymfollow", ""}, {"symfollow", "", "nosymfollow"},
	}
	c := b.Container()
	for _, a := range attributes {
		c.Spec.Mounts = append(c.Spec.Mounts,
			specs.Mount{Destination: "/one/" + a.option, Type: "bind", Source: b.Path("tree"), Options: []string{"rbind", a.option}},
			specs.Mount{Destination: "/all/" + a.option, Type: "bind", Source: b.Path("tree"), Options: []string{"rbind", "r" + a.option}})
	}
	v := c.Look()
	for _, a := range attributes {
		for _, target := range []string{"/one/" + a.option, "/all/" + a.option, "/all/" + a.option + "/below"} {
			options := harness.MountAt(t, v, target).Options
			if a.have != "" && !slices.Contains(options, a.have) || slices.Contains(options, a.haveNot) {
				t.Errorf("%s has %q", target, options)
			}
		}
		// What is not asked for a whole tree is not for what is mounted below.
		if below := harness.MountAt(t, v, "/one/"+a.option+"/below").Options; a.have != "" && a.have != "rw" && a.have != "relatime" && slices.Contains(below, a.have) {
			t.Errorf("/one/%s/below has %q", a.option, below)
		}
	}
}

// A source is the host's path: links in it are followed there.
func TestMountSourceIsALink(t *testing.T) {
	b := harness.New(t)
	b.WriteFile("tree/file", "the file", 0o644)
	for name, target := range map[string]string{"folder": "tree", "file": "tree/file", "twice": "folder", "absolute": b.Path("tree")} {
		if err := os.Symlink(target, b.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
	c := b.Container()
	for destination, source := range map[string]string{"/by-folder": "folder", "/by-file": "file", "/by-twice": "twice", "/by-absolute": "absolute", "/through": "folder/file"} {
		c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: destination, Type: "bind", Source: b.Path(source), Options: []string{"bind"}})
	}
	v := c.Look("/by-folder/file", "/by-file", "/by-twice/file", "/by-absolute/file", "/through")
	var st unix.Stat_t
	if err := unix.Stat(b.Path("tree/file"), &st); err != nil {
		t.Fatal(err)
	}
	for path, f := range v.Files {
		if f.Type != "file" || f.Size != st.Size {
			t.Errorf("%s is %+v", path, f)
		}
	}
}

// Later mounts lie over earlier ones, on the same target and above it.
func TestMountsOverMounts(t *testing.T) {
	b := harness.New(t)
	b.WriteFile("first/one", "", 0o644)
	b.WriteFile("second/two", "", 0o644)
	c := b.Container()
	for _, source := range []string{"first", "second"} {
		c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/over", Type: "bind", Source: b.Path(source), Options: []string{"bind"}})
	}
	c.Spec.Mounts = append(c.Spec.Mounts,
		specs.Mount{Destination: "/under/deep", Type: "bind", Source: b.Path("first"), Options: []string{"bind"}},
		specs.Mount{Destination: "/under", Type: "tmpfs", Source: "tmpfs"})
	c.Spec.Process.Args = []string{"/inside", "look", "/over/one", "/over/two", "/under", "/under/deep"}
	v := harness.ParseView(t, c.Run().OK(t).Stdout)
	for path, want := range map[string]string{"/over/one": "", "/over/two": "file", "/under": "dir", "/under/deep": ""} {
		if got := v.Files[path].Type; got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

// Images of engines are overlays: what the container writes comes to the upper layer.
func TestRootfsOnOverlay(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "try", "create=/made", "write=/made,by the container")
	for _, dir := range []string{"upper", "work"} {
		if err := os.Mkdir(b.Path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	lower := b.Path("lower")
	if err := os.Rename(c.Rootfs(), lower); err != nil {
		t.Fatal(err)
	}
	mountForTest(t, "overlay", c.Rootfs(), "overlay", "lowerdir="+lower+",upperdir="+b.Path("upper")+",workdir="+b.Path("work"))
	c.Run().OK(t)
	if got := readFile(t, filepath.Join(b.Path("upper"), "made")); got != "by the container" {
		t.Errorf("the upper layer has %q", got)
	}
	if _, err := os.Stat(filepath.Join(lower, "made")); err == nil {
		t.Error("the lower layer was written to")
	}
}

// An engine may itself live in a user namespace, and give its containers another below that.
func TestNestedUserNamespaces(t *testing.T) {
	b := harness.New(t)
	c := inUserNamespace(b, "/inside", "look")
	for _, mappings := range [][]specs.LinuxIDMapping{c.Spec.Linux.UIDMappings, c.Spec.Linux.GIDMappings} {
		mappings[0] = specs.LinuxIDMapping{ContainerID: 0, HostID: 1000, Size: 1000}
	}
	cmd := c.Command("run", nil)
	cmd.Wrap = []string{harness.Helper(t), "nested", "100000"}
	v := harness.ParseView(t, cmd.Run().OK(t).Stdout)
	if !slices.Equal(v.UIDMap, []string{"0 1000 1000"}) || v.Status["Uid"] != "0 0 0 0" {
		t.Errorf("map %q, uid %s", v.UIDMap, v.Status["Uid"])
	}
}
