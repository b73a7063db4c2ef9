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

// Images have links where files of the host are mounted, to what only a booted system has. What
// they lead to is made, in the root, as the container would follow them.
func TestMountTargetIsADanglingLink(t *testing.T) {
	for name, with := range map[string]func(c *harness.Container){
		"plain": func(c *harness.Container) {},
		"below a mount": func(c *harness.Container) {
			c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/run", Type: "tmpfs", Source: "tmpfs"})
		},
		"in a user namespace": func(c *harness.Container) {
			harness.UserNamespace(c.Spec)
			if err := os.Chown(c.Rootfs(), 100000, 100000); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(c.Path("etc"), 100000, 100000); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			b.WriteFile("host/file", "the host's", 0o644)
			c := b.Container()
			with(c)
			for link, target := range map[string]string{
				"etc/resolv.conf": "../run/systemd/resolve/stub-resolv.conf", "etc/absolute": "/run/absolute", "etc/outside": "../../../../../outside/" + b.Tag,
				"var/run": "/run", "etc/again": "absolute.2", "etc/absolute.2": "/run/two",
			} {
				replaceWithLink(t, c.Path(link), target)
			}
			bind := func(target, source string) {
				c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: target, Type: "bind", Source: b.Path(source), Options: []string{"rbind"}})
			}
			files := []string{"/etc/resolv.conf", "/etc/absolute", "/etc/outside", "/etc/again", "/var/run/deep/er/file"}
			for _, target := range files {
				bind(target, "host/file")
			}
			bind("/var/run/secrets", "host")
			c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/var/run/memory", Type: "tmpfs", Source: "tmpfs"})
			var words []string
			for _, file := range append(files, "/run/systemd/resolve/stub-resolv.conf", "/outside/"+b.Tag, "/run/two", "/run/secrets/file") {
				words = append(words, "read="+file)
			}
			for word, a := range c.Try(words...) {
				if a.Result != "the host's" {
					t.Errorf("%s: %+v", word, a)
				}
			}
			if _, err := os.Lstat("/outside"); err == nil {
				t.Error("something was made on the host")
			}
			harness.MountAt(t, c.Look(), "/run/memory")
		})
	}
}

// homeOf makes a home that nobody but its owner may enter, with a directory and a file in it that
// everybody may read.
func homeOf(t *testing.T, b *harness.Box, uid int) string {
	t.Helper()
	home := b.Path("home")
	for _, dir := range []string{"volume", "single"} {
		b.WriteFile("home/"+dir+"/file", "the volume's", 0o644)
		if err := os.Chown(home+"/"+dir+"/file", uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	mountForTest(t, "tmpfs", home+"/volume/below", "tmpfs", "mode=755")
	if err := os.Chown(home, uid, uid); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	return home
}

// The way to a source may lead through a directory that the container's users could not enter: a
// home.
func TestMountSourceInAPrivateHome(t *testing.T) {
	const uid = 100000 // not the container's, whose ids begin above
	b := harness.New(t)
	home := homeOf(t, b, uid)
	c := inUserNamespace(b)
	ids := []specs.LinuxIDMapping{{ContainerID: 0, HostID: 200000, Size: 65536}}
	c.Spec.Linux.UIDMappings, c.Spec.Linux.GIDMappings = ids, ids
	destinations := map[string]specs.Mount{
		"/dir":    {Source: home + "/volume", Options: []string{"rbind"}},
		"/file":   {Source: home + "/volume/file", Options: []string{"bind"}},
		"/single": {Source: home + "/single", Options: []string{"bind", "nosuid"}},
		"/mapped": {Source: home + "/single", Options: []string{"bind", "idmap"},
			UIDMappings: []specs.LinuxIDMapping{{ContainerID: uid, HostID: 200007, Size: 1}}, GIDMappings: []specs.LinuxIDMapping{{ContainerID: uid, HostID: 200007, Size: 1}}},
	}
	for destination, m := range destinations {
		m.Type, m.Destination = "bind", destination
		c.Spec.Mounts = append(c.Spec.Mounts, m)
		if destination == "/file" {
			c.WriteFile("file", "", 0o644)
		} else if err := os.Mkdir(c.Path(destination), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	v := c.Look("/dir/file", "/file", "/single/file", "/mapped/file")
	for path, f := range v.Files {
		owner := uint32(65534)
		if path == "/mapped/file" {
			owner = 7
		}
		if f.Type != "file" || f.Size != int64(len("the volume's")) || f.UID != owner {
			t.Errorf("%s is %+v, want the volume's, owned by %d", path, f, owner)
		}
	}
	harness.MountAt(t, v, "/dir/below")
	harness.HasOptions(t, harness.MountAt(t, v, "/single"), "nosuid")
	// What the host has restricted is locked also on this way.
	if err := unix.Mount("", home+"/volume/below", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Type: "bind", Source: home + "/volume/below", Destination: "/dir/below", Options: []string{"bind", "rw"}})
	c.Run().Fails(t, "/mounts/10", "user namespace")
}

// The owners of a volume mapped as in the user namespace that the container joins.
func TestIDMapOfAJoinedUserNamespace(t *testing.T) {
	b := harness.New(t)
	owner := inUserNamespace(b, "/bin/sleep", "100")
	owner.RunDetached()
	b.WriteFile("volume/file", "", 0o644)
	if err := os.Chown(b.Path("volume/file"), 5, 6); err != nil {
		t.Fatal(err)
	}
	c := b.Container()
	if err := os.Mkdir(c.Path("volume"), 0o755); err != nil {
		t.Fatal(err)
	}
	harness.NamespacePath(c.Spec, specs.UserNamespace, procPath(owner.PID, "ns/user"))
	c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/volume", Type: "bind", Source: b.Path("volume"), Options: []string{"bind", "idmap"}})
	if f := c.Look("/volume/file").Files["/volume/file"]; f.UID != 5 || f.GID != 6 {
		t.Errorf("%+v, want the owner 5:6", f)
	}
	owner.Kill("KILL")
	owner.WaitExit()
	owner.Delete()
}

// A source may be what an earlier mount of the same config makes, by its name on the host below the
// root file system.
func TestMountSourceIsMadeByAnEarlierMount(t *testing.T) {
	for name, with := range map[string]func(c *harness.Container){
		"plain": func(c *harness.Container) {},
		"in a user namespace": func(c *harness.Container) {
			harness.UserNamespace(c.Spec)
			for _, dir := range []string{"", "etc"} {
				if err := os.Chown(c.Path(dir), 100000, 100000); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			b.WriteFile("volume/dir/file", "the volume's", 0o644)
			c := b.Container()
			c.WriteFile("data/dir/file", "the image's", 0o644)
			with(c)
			for destination, source := range map[string]string{"/0": b.Path("volume"), "/data": b.Path("volume")} {
				c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: destination, Type: "bind", Source: source, Options: []string{"bind"}})
			}
			for destination, source := range map[string]string{"/dir": "0/dir", "/etc/file": "0/dir/file", "/over": "data/dir", "/proc-2": "proc/self"} {
				c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: destination, Type: "bind", Source: c.Path(source), Options: []string{"rbind"}})
			}
			for word, a := range c.Try("read=/dir/file", "read=/etc/file", "read=/over/file") {
				if a.Result != "the volume's" {
					t.Errorf("%s: %+v", word, a)
				}
			}
			c.Spec.Mounts[len(c.Spec.Mounts)-1].Source = c.Path("0/missing")
			c.Run().Fails(t, "/mounts/11", "/0/missing", "no such file or directory")
		})
	}
}

// Engines join a list of their own with the user's.
func TestMaskedPathIsListedTwice(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.Spec.Linux.MaskedPaths = append(c.Spec.Linux.MaskedPaths, "/proc/keys", "/proc//keys", "/proc/keys/")
	c.Spec.Linux.ReadonlyPaths = append(c.Spec.Linux.ReadonlyPaths, "/proc/sys/", "/proc/./sys")
	v := c.Look()
	count := map[string]int{}
	for _, m := range v.Mounts {
		count[m.Target]++
	}
	for _, path := range []string{"/proc/keys", "/proc/sys"} {
		if count[path] != 1 {
			t.Errorf("%d mounts on %s", count[path], path)
		}
	}
}
