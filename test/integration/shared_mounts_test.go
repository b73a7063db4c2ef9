package integration

import (
	"os"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// sharesMounts makes a container that has its caller's mount namespace.
func sharesMounts(b *harness.Box, args ...string) *harness.Container {
	c := b.Container(args...)
	harness.WithoutNamespace(c.Spec, specs.MountNamespace)
	c.Spec.Mounts, c.Spec.Linux.MaskedPaths, c.Spec.Linux.ReadonlyPaths = nil, nil, nil
	return c
}

func mountinfo(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A config without mounts has none: what a program needs is for the config to say, as with runc and
// crun.
func TestNoMountsButTheConfigs(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "sleep 1000")
	c.Spec.Mounts, c.Spec.Linux.MaskedPaths, c.Spec.Linux.ReadonlyPaths = nil, nil, nil
	c.RunDetached()
	table := strings.TrimSpace(readFile(t, procPath(c.PID, "mountinfo")))
	if fields := strings.Fields(table); strings.Contains(table, "\n") || len(fields) < 5 || fields[4] != "/" {
		t.Errorf("it has other mounts than its root:\n%s", table)
	}
	c.Exec(nil, "/bin/sh", "-c", "test -c /dev/null && test -L /dev/fd").OK(t)
}

// Without a mount namespace the container is in its root with the devices that every container
// has, and in its working directory, and the host's mounts are as they were.
func TestWithoutAMountNamespace(t *testing.T) {
	b := harness.New(t)
	before := mountinfo(t)
	c := sharesMounts(b, "/bin/sh", "-c", "pwd; test -c /dev/null && test -c /dev/urandom && echo devices; echo lost > /dev/null; test ! -s /dev/null && echo null; test -e /in-the-root && echo root; sleep 1000")
	c.Spec.Process.Cwd = "/made/by/us"
	c.WriteFile("/in-the-root", "", 0o644)
	out := b.Path("out")
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c.Stdout = f
	c.RunDetached()
	if got := c.Exec([]string{"--cwd", "/made"}, "/bin/sh", "-c", "pwd; test -c /dev/zero && test -e /in-the-root && echo ${0##*/}").OK(t).Stdout; got != "/made\nsh\n" {
		t.Errorf("exec says %q", got)
	}
	if during := mountinfo(t); during != before {
		t.Errorf("mounts of the host while it runs:\n%s\nbefore:\n%s", during, before)
	}
	c.Kill("KILL").WaitExit()
	c.Delete()
	if after := mountinfo(t); after != before {
		t.Errorf("mounts of the host afterwards:\n%s\nbefore:\n%s", after, before)
	}
	said, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(said), "/made/by/us\ndevices\nnull\nroot\n"; got != want {
		t.Errorf("the container says %q, want %q", got, want)
	}
}

// With a user namespace there is no right to make device nodes, and the mounts that stand for
// them elsewhere would be the host's.
func TestWithoutAMountNamespaceInAUserNamespace(t *testing.T) {
	b := harness.New(t)
	before := mountinfo(t)
	c := sharesMounts(b, "/bin/sh", "-c", "test ! -e /dev/null && readlink /dev/fd")
	harness.UserNamespace(c.Spec)
	for _, dir := range []string{"/", "/dev"} {
		if err := os.Chown(c.Path(dir), 100000, 100000); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Run().OK(t).Stdout; got != "/proc/self/fd\n" {
		t.Errorf("it says %q", got)
	}
	if after := mountinfo(t); after != before {
		t.Errorf("mounts of the host:\n%s\nbefore:\n%s", after, before)
	}
}

// What could only be done to the host is refused.
func TestWithoutAMountNamespaceNothingIsMounted(t *testing.T) {
	b := harness.New(t)
	before := mountinfo(t)
	for entry, change := range map[string]func(*specs.Spec){
		"/mounts":              func(s *specs.Spec) { s.Mounts = []specs.Mount{{Destination: "/proc", Type: "proc", Source: "proc"}} },
		"/linux/maskedPaths":   func(s *specs.Spec) { s.Linux.MaskedPaths = []string{"/etc"} },
		"/linux/readonlyPaths": func(s *specs.Spec) { s.Linux.ReadonlyPaths = []string{"/etc"} },
		"/root/readonly":       func(s *specs.Spec) { s.Root.Readonly = true },
		"/linux/devices/0": func(s *specs.Spec) {
			harness.UserNamespace(s)
			s.Linux.Devices = []specs.LinuxDevice{{Path: "/dev/fuse", Type: "c", Major: 10, Minor: 229}}
		},
	} {
		t.Run(strings.TrimPrefix(entry, "/"), func(t *testing.T) {
			c := sharesMounts(b, "/bin/true")
			change(c.Spec)
			c.Run().FailsWith(t, 1, entry+":", "mount namespace", `add {"type": "mount"}`)
		})
	}
	if after := mountinfo(t); after != before {
		t.Errorf("mounts of the host:\n%s\nbefore:\n%s", after, before)
	}
}
