package integration

import (
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

func TestDefaultFilesystems(t *testing.T) {
	b := harness.New(t)
	v := b.Container().Look()
	for target, want := range map[string]struct {
		kind    string
		options []string
	}{
		"/proc":       {"proc", []string{"nosuid", "nodev", "noexec", "rw"}},
		"/dev":        {"tmpfs", []string{"nosuid", "!noexec", "rw", "mode=755", "size=65536k"}},
		"/dev/pts":    {"devpts", []string{"nosuid", "noexec", "gid=5", "mode=620", "ptmxmode=666"}},
		"/dev/shm":    {"tmpfs", []string{"nosuid", "noexec", "nodev", "size=65536k"}},
		"/dev/mqueue": {"mqueue", []string{"nosuid", "noexec", "nodev"}},
		"/sys":        {"sysfs", []string{"nosuid", "noexec", "nodev", "ro"}},
	} {
		m := harness.MountAt(t, v, target)
		if m.Type != want.kind {
			t.Errorf("%s is a %s, want %s", target, m.Type, want.kind)
		}
		harness.HasOptions(t, m, want.options...)
	}
}

// The host's mounts are not only hidden, they are gone: the old root must not be reachable.
func TestNoMountsOfTheHost(t *testing.T) {
	b := harness.New(t)
	v := b.Container().Look()
	ids := map[int]bool{}
	for _, m := range v.Mounts {
		ids[m.ID] = true
	}
	roots := 0
	for _, m := range v.Mounts {
		if m.Target == "/" {
			roots++
		} else if !ids[m.Parent] {
			t.Errorf("the mount on %s hangs on %d, which is not in the container", m.Target, m.Parent)
		}
		if strings.Contains(m.Target, b.Dir) || strings.Contains(m.Target, "//deleted") || strings.Contains(m.Target, "pivot") || strings.Contains(m.Target, "oldroot") {
			t.Errorf("%s is mounted", m.Target)
		}
	}
	if roots != 1 {
		t.Errorf("%d mounts on /", roots)
	}
}

// What nobody mounted is not there: the engine adds nothing of its own.
func TestNoMountsNobodyAskedFor(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	v := c.Look()
	var asked []string
	for _, m := range c.Spec.Mounts {
		asked = append(asked, m.Destination)
	}
	asked = append(asked, c.Spec.Linux.MaskedPaths...)
	asked = append(asked, c.Spec.Linux.ReadonlyPaths...)
	for _, m := range v.Mounts {
		if m.Target != "/" && !slices.Contains(asked, m.Target) {
			t.Errorf("%s (%s) is mounted on %s", m.Source, m.Type, m.Target)
		}
	}
}

func TestDefaultDevices(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	v := c.Look("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts/ptmx",
		"/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/")
	for name, numbers := range map[string][2]uint32{
		"null": {1, 3}, "zero": {1, 5}, "full": {1, 7}, "random": {1, 8}, "urandom": {1, 9}, "tty": {5, 0},
	} {
		f := v.Files["/dev/"+name]
		if f.Type != "char" || f.Major != numbers[0] || f.Minor != numbers[1] || f.Mode != 0o666 || f.UID != 0 || f.GID != 0 {
			t.Errorf("%+v", f)
		}
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if f := v.Files["/dev/"+name]; f.LinkTarget != target {
			t.Errorf("%+v, want a link to %s", f, target)
		}
	}
	if f := v.Files["/dev/ptmx"]; f.LinkTarget != "pts/ptmx" && f.LinkTarget != "/dev/pts/ptmx" && (f.Type != "char" || f.Major != 5 || f.Minor != 2) {
		t.Errorf("%+v, want the terminals' multiplexer", f)
	}
	// Nothing of the host's devices is there.
	for _, f := range v.Dirs["/dev/"] {
		known := []string{"null", "zero", "full", "random", "urandom", "tty", "ptmx", "fd", "stdin", "stdout", "stderr", "pts", "shm", "mqueue", "console", "core"}
		if !slices.Contains(known, f.Name) {
			t.Errorf("/dev has %+v", f)
		}
	}
}

func TestDefaultDevicesWork(t *testing.T) {
	for _, uid := range []uint32{0, 1000} {
		b := harness.New(t)
		c := b.Container()
		c.Spec.Process.User.UID = uid
		words := []string{"open-device=/dev/null", "open-device=/dev/zero", "open-device=/dev/full", "open-device=/dev/random", "open-device=/dev/urandom", "open-device=/dev/ptmx"}
		harness.Allowed(t, c.Try(words...), words...)
	}
}

func TestReadonlyRoot(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.Spec.Root.Readonly = true
	got := c.Try("create=/new", "write=/etc/passwd", "mkdir=/etc/new", "unlink=/etc/group", "create=/dev/shm/new", "create=/dev/new")
	for _, what := range []string{"create=/new", "write=/etc/passwd", "mkdir=/etc/new", "unlink=/etc/group"} {
		harness.Refused(t, got, what, "EROFS")
	}
	harness.Allowed(t, got, "create=/dev/shm/new", "create=/dev/new")
	harness.HasOptions(t, harness.MountAt(t, c.Look(), "/"), "ro")
	// It is the mount that is read-only, not the directory on the host.
	c.WriteFile("written-from-outside", "", 0o644)
}

func TestWritableRoot(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	harness.Allowed(t, c.Try("create=/new", "mkdir=/newer"), "create=/new", "mkdir=/newer")
}

func TestMaskedPaths(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.WriteFile("secret/file", "a secret", 0o644)
	c.WriteFile("secret.txt", "a secret", 0o644)
	c.Spec.Linux.MaskedPaths = []string{"/secret", "/secret.txt", "/proc/version", "/sys/firmware", "/not/there", "/proc/not-there"}
	got := c.Try("list=/secret", "read=/secret.txt", "read=/secret/file", "create=/secret/new", "write=/secret.txt,x", "list=/sys/firmware", "read=/proc/version")
	if a := got["list=/secret"]; a.Errno != "" || a.Result != "" {
		t.Errorf("%+v, want an empty folder", a)
	}
	for _, what := range []string{"read=/secret.txt", "read=/proc/version"} {
		if a := got[what]; a.Errno != "" || a.Result != "" {
			t.Errorf("%+v, want nothing to read", a)
		}
	}
	harness.Refused(t, got, "read=/secret/file", "ENOENT")
	harness.Refused(t, got, "create=/secret/new", "EROFS")
	if a := got["list=/sys/firmware"]; a.Result != "" {
		t.Errorf("%+v", a)
	}
	if data := readFile(t, c.Path("secret.txt")); data != "a secret" {
		t.Errorf("the masked file on the host is now %q", data)
	}
}

// A link in the container must not lead the mask to another file.
func TestMaskedPathThroughALink(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.WriteFile("real/file", "seen", 0o644)
	replaceWithLink(t, c.Path("link"), "/real")
	c.Spec.Linux.MaskedPaths = []string{"/link/file"}
	if a := c.Try("read=/real/file")["read=/real/file"]; a.Result != "" {
		t.Errorf("the file behind the link can be read: %+v", a)
	}
}

func TestReadonlyPaths(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.WriteFile("fixed/file", "x", 0o644)
	c.WriteFile("fixed.txt", "x", 0o644)
	c.Spec.Linux.ReadonlyPaths = []string{"/fixed", "/fixed.txt", "/proc/sys", "/not/there"}
	got := c.Try("create=/fixed/new", "write=/fixed/file", "write=/fixed.txt", "write=/proc/sys/kernel/hostname", "read=/fixed/file", "create=/free")
	for _, what := range []string{"create=/fixed/new", "write=/fixed/file", "write=/fixed.txt", "write=/proc/sys/kernel/hostname"} {
		harness.Refused(t, got, what, "EROFS")
	}
	harness.Allowed(t, got, "read=/fixed/file", "create=/free")
}

// A read-only path keeps the flags that its mount had: losing nosuid or noexec by making it
// read-only would open it.
func TestReadonlyPathsKeepFlags(t *testing.T) {
	b := harness.New(t)
	v := b.Container().Look()
	harness.HasOptions(t, harness.MountAt(t, v, "/proc/sys"), "ro", "nosuid", "nodev", "noexec")
}

func TestPathsMustBeAbsolute(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Linux.MaskedPaths = []string{"relative"}
	c.Run().Fails(t, "/linux/maskedPaths/0")
	c.Spec.Linux.MaskedPaths, c.Spec.Linux.ReadonlyPaths = nil, []string{"relative"}
	c.Run().Fails(t, "/linux/readonlyPaths/0")
}

func TestNoPivot(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "look", "/inside", "/"+b.Tag)
	v := harness.ParseView(t, c.Run("--no-pivot").OK(t).Stdout)
	if v.Files["/inside"].Error != "" {
		t.Errorf("%+v", v.Files["/inside"])
	}
	harness.MountAt(t, v, "/proc")
	got := b.Container().Try("list=/proc/1/root")
	if a := got["list=/proc/1/root"]; !strings.Contains(a.Result, "inside") {
		t.Errorf("%+v", a)
	}
}

func TestRootfsPropagation(t *testing.T) {
	for propagation, want := range map[string]func(optional []string) bool{
		"private":    func(o []string) bool { return len(o) == 0 },
		"slave":      func(o []string) bool { return hasPrefix(o, "master:") && !hasPrefix(o, "shared:") },
		"shared":     func(o []string) bool { return hasPrefix(o, "shared:") },
		"unbindable": func(o []string) bool { return slices.Contains(o, "unbindable") },
		"":           func(o []string) bool { return !hasPrefix(o, "shared:") },
	} {
		t.Run("is "+propagation, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container()
			c.Spec.Linux.RootfsPropagation = propagation
			if m := harness.MountAt(t, c.Look(), "/"); !want(m.Optional) {
				t.Errorf("%q: the root has %v", propagation, m.Optional)
			}
		})
	}
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Linux.RootfsPropagation = "sometimes"
	c.Run().Fails(t, "/linux/rootfsPropagation")
}

func hasPrefix(list []string, prefix string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.HasPrefix(s, prefix) })
}

// Mounts are made in the order of the list, so that a later one can lie in an earlier one.
func TestMountsInOrder(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.Spec.Mounts = append(c.Spec.Mounts,
		specs.Mount{Destination: "/a", Type: "tmpfs", Source: "first"},
		specs.Mount{Destination: "/a/b/c", Type: "tmpfs", Source: "second"},
		specs.Mount{Destination: "/a", Type: "tmpfs", Source: "third"},
	)
	v := c.Look("/a/b")
	if m := harness.MountAt(t, v, "/a"); m.Source != "third" {
		t.Errorf("%+v", m)
	}
	if f := v.Files["/a/b"]; f.Error != "ENOENT" {
		t.Errorf("%+v: the last mount does not cover the others", f)
	}
}
