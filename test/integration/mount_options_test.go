package integration

import (
	"os"
	"slices"
	"strconv"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// tmpfsWith is a tmpfs on /tried.
func tmpfsWith(options ...string) specs.Mount {
	return specs.Mount{Destination: "/tried", Type: "tmpfs", Source: "tmpfs", Options: options}
}

// Clients write empty words (Podman with --systemd=always), and several options in one string, as
// in /etc/fstab.
func TestMountOptionsAreLists(t *testing.T) {
	b := harness.New(t)
	b.WriteFile("lower,with/file", "", 0o644)
	c := b.Container()
	c.Spec.Mounts = append(c.Spec.Mounts, tmpfsWith("", "size=1m,mode=700", "noexec,,nosuid", ""),
		specs.Mount{Destination: "/overlay", Type: "overlay", Source: "overlay", Options: []string{"ro,lowerdir=" + b.Path(`lower\,with`) + ":" + c.Path("etc")}})
	v := c.Look("/tried", "/overlay/file", "/overlay/passwd")
	m := harness.MountAt(t, v, "/tried")
	harness.HasOptions(t, m, "noexec", "nosuid")
	if !slices.Contains(m.Super, "size=1024k") || v.Files["/tried"].Mode != 0o700 {
		t.Errorf("super block options %q, mode %o", m.Super, v.Files["/tried"].Mode)
	}
	for _, path := range []string{"/overlay/file", "/overlay/passwd"} {
		if f := v.Files[path]; f.Type != "file" {
			t.Errorf("%s is %+v", path, f)
		}
	}
}

// What the kernel has to say about an option that it refuses reaches the user.
func TestRefusedMountOptionIsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		mounts []specs.Mount
		words  []string
	}{
		"unknown":   {[]specs.Mount{tmpfsWith("size=1m", "nosuch=1")}, []string{`/mounts/6: mount "tmpfs" on /tried`, "nosuch"}},
		"bad value": {[]specs.Mount{tmpfsWith("size=much")}, []string{"/mounts/6", "size"}},
		"remounted": {[]specs.Mount{tmpfsWith(), tmpfsWith("remount", "nosuch")}, []string{"/mounts/7: remount /tried", "nosuch"}},
		"when made": {[]specs.Mount{{Destination: "/tried", Type: "overlay", Source: "overlay"}}, []string{"/mounts/6", "refuses an option", "invalid argument"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/true")
			c.Spec.Mounts = append(c.Spec.Mounts, test.mounts...)
			c.Run().Fails(t, test.words...)
		})
	}
}

// A tmpfs without a mode of its own has that of the directory it covers: what was private stays
// private.
func TestTmpfsHasTheModeOfWhatItCovers(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	modes := map[string]uint32{}
	cover := func(name string, mode uint32, options ...string) {
		c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/" + name, Type: "tmpfs", Source: "tmpfs", Options: options})
		modes["/"+name] = mode
	}
	for name, mode := range map[string]os.FileMode{"private": 0o700, "private-ro": 0o750, "all": 0o777 | os.ModeSticky, "group": 0o770 | os.ModeSetgid, "said": 0o700, "copied": 0o711} {
		if err := os.Mkdir(c.Path(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(c.Path(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	cover("private", 0o700)
	cover("private-ro", 0o750, "ro")
	cover("all", 0o1777)
	cover("group", 0o2770)
	cover("said", 0o751, "mode=751")
	cover("copied", 0o711, "tmpcopyup")
	cover("missing", 0o1777)
	var paths []string
	for path := range modes {
		paths = append(paths, path)
	}
	v := c.Look(paths...)
	for path, want := range modes {
		if got := v.Files[path]; got.Mode != want || got.UID != 0 {
			t.Errorf("%s has the mode %o and the owner %d, want %o and 0", path, got.Mode, got.UID, want)
		}
	}
	harness.HasOptions(t, harness.MountAt(t, v, "/private-ro"), "ro")
}

// A read-only tmpfs still has in it what the config asks for: what is mounted there, devices,
// links, the terminal, what is copied.
func TestReadOnlyTmpfsIsFilledFirst(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.WriteFile("copied/file", "the image's", 0o644)
	for i := range c.Spec.Mounts {
		if m := &c.Spec.Mounts[i]; m.Destination == "/dev" {
			m.Options = append(m.Options, "ro")
		}
	}
	c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/copied", Type: "tmpfs", Source: "tmpfs", Options: []string{"tmpcopyup", "ro"}})
	c.Spec.Linux.Devices = []specs.LinuxDevice{{Path: "/dev/fuse", Type: "c", Major: 10, Minor: 229}}
	v := c.Look("/dev/null", "/dev/fuse", "/dev/fd", "/dev/ptmx", "/dev/pts/ptmx")
	for path, want := range map[string]string{"/dev/null": "char", "/dev/fuse": "char", "/dev/fd": "link", "/dev/ptmx": "link", "/dev/pts/ptmx": "char"} {
		if got := v.Files[path]; got.Type != want {
			t.Errorf("%s is %+v", path, got)
		}
	}
	for _, path := range []string{"/dev", "/copied"} {
		harness.HasOptions(t, harness.MountAt(t, v, path), "ro")
	}
	tried := c.Try("create=/dev/made", "create=/dev/shm/made", "create=/copied/made", "read=/copied/file")
	harness.Refused(t, tried, "create=/dev/made", "EROFS")
	harness.Refused(t, tried, "create=/copied/made", "EROFS")
	harness.Allowed(t, tried, "create=/dev/shm/made", "read=/copied/file")
}

// restricted is a directory on a file system that the host has mounted with all restrictions.
func restricted(t *testing.T, b *harness.Box) string {
	t.Helper()
	source := b.Path("restricted")
	mountForTest(t, "tmpfs", source, "tmpfs", "mode=777")
	if err := unix.Mount("", source, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		t.Fatal(err)
	}
	return source
}

var restrictions = []string{"ro", "nosuid", "nodev", "noexec"}

// A bind mount has the attributes that its words say, and no others, as soon as one of them is
// about attributes.
func TestWordsOfABindMountAreAllItHas(t *testing.T) {
	b := harness.New(t)
	source := restricted(t, b)
	c := b.Container()
	for name, test := range map[string]struct{ words, has []string }{
		"none":      {[]string{"rbind"}, restrictions},
		"others":    {[]string{"rbind", "defaults", "rprivate"}, restrictions},
		"recursive": {[]string{"rbind", "rrw"}, []string{"nosuid", "nodev", "noexec"}},
		"rw":        {[]string{"rbind", "rw"}, nil},
		"exec":      {[]string{"rbind", "exec"}, nil},
		"ro":        {[]string{"rbind", "ro"}, []string{"ro"}},
		"nodev":     {[]string{"bind", "rw", "nodev"}, []string{"nodev"}},
		"noatime":   {[]string{"bind", "noatime"}, []string{"noatime"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.Spec.Mounts = append(c.Spec.Mounts[:6:6], specs.Mount{Destination: "/data", Type: "bind", Source: source, Options: test.words})
			m := harness.MountAt(t, c.Look(), "/data")
			for _, word := range append(restrictions, "noatime") {
				if got, want := slices.Contains(m.Options, word), slices.Contains(test.has, word); got != want {
					t.Errorf("%q: %s is %v, want %v", test.words, word, got, want)
				}
			}
		})
	}
	c.Spec.Mounts = append(c.Spec.Mounts[:6:6], specs.Mount{Destination: "/data", Type: "bind", Source: source, Options: []string{"rbind", "rw"}})
	harness.Allowed(t, c.Try("create=/data/made"), "create=/data/made")
}

// In a user namespace the host's restrictions are locked: what is only implied stays, what is said
// against them is an error.
func TestWordsOfABindMountInAUserNamespace(t *testing.T) {
	harness.NeedNamespace(t, "user")
	b := harness.New(t)
	source := restricted(t, b)
	c := inUserNamespace(b)
	if err := os.Mkdir(c.Path("data"), 0o755); err != nil {
		t.Fatal(err)
	}
	mounts := c.Spec.Mounts
	bind := func(words ...string) {
		c.Spec.Mounts = append(slices.Clip(mounts), specs.Mount{Destination: "/data", Type: "bind", Source: source, Options: words})
	}
	for _, words := range [][]string{{"rbind", "ro"}, {"rbind", "noexec"}, {"rbind"}} {
		bind(words...)
		harness.HasOptions(t, harness.MountAt(t, c.Look(), "/data"), restrictions...)
	}
	bind("rbind", "rw")
	c.Run().Fails(t, "/mounts/"+strconv.Itoa(len(mounts)), source, "user namespace")
}

// A word that nobody knows is an error also where the kernel would not look at it.
func TestUnknownWordOfABindMount(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/data", Type: "bind", Source: b.Dir, Options: []string{"rbind", "nosiud"}})
	c.Run().Fails(t, "/mounts/6", `no option "nosiud"`)
}
