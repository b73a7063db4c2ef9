package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// mappedRoot makes a container that needs no user namespace of its own, and calls for it by an
// ordinary user who is root of a user namespace, as Podman makes them: with no --root, and
// XDG_RUNTIME_DIR for a place of its own.
func mappedRoot(t *testing.T) (dir string, c *harness.Container, call func(user string, args ...string) harness.Result) {
	t.Helper()
	b := harness.New(t)
	harness.NeedNamespace(t, "user")
	const uid = 54321 // of nobody
	c = b.Container("/bin/sh", "-c", "id -u; cat /proc/self/cgroup")
	c.Spec.Linux.CgroupsPath, c.Spec.Linux.Resources = "", nil
	harness.Rootless(c.Spec)
	c.Spec.Linux.UIDMappings, c.Spec.Linux.GIDMappings = nil, nil
	c.Spec.Linux.Namespaces = without(c.Spec.Linux.Namespaces, specs.UserNamespace)
	c.Write()
	dir = b.Path("runtime")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	ids := []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
	return dir, c, func(user string, args ...string) harness.Result {
		t.Helper()
		call := b.Command(args...)
		call.Bare = true
		call.Env = []string{"XDG_RUNTIME_DIR=" + dir, "USER=" + user}
		call.Attr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
			Credential: &syscall.Credential{NoSetGroups: true}}
		return call.Run()
	}
}

func without(list []specs.LinuxNamespace, kind specs.LinuxNamespaceType) []specs.LinuxNamespace {
	return slices.DeleteFunc(slices.Clone(list), func(ns specs.LinuxNamespace) bool { return ns.Type == kind })
}

// /run and the cgroups belong to the real root: the container is kept below XDG_RUNTIME_DIR, and
// goes without a cgroup.
func TestMappedRoot(t *testing.T) {
	dir, c, call := mappedRoot(t)
	if out := call("somebody", "run", "--bundle", c.Dir, c.ID).OK(t).Stdout; out[:2] != "0\n" {
		t.Errorf("it printed %q", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "berth")); err != nil {
		t.Error(err)
	}
}

// Without a cgroup there is no container where that is said, or where a limit is asked for.
func TestMappedRootNeedsCgroup(t *testing.T) {
	_, c, call := mappedRoot(t)
	call("somebody", "--rootless=false", "run", "--bundle", c.Dir, c.ID).Fails(t, "permission denied")
	most := int64(10)
	c.Spec.Linux.Resources = &specs.LinuxResources{Pids: &specs.LinuxPids{Limit: &most}}
	c.Write()
	call("somebody", "run", "--bundle", c.Dir, c.ID).Fails(t, "permission denied")
}

// A whole system inside a user namespace has a /run of its own, and its root is called so. Here
// /run is not the user's.
func TestMappedRootOfWholeSystem(t *testing.T) {
	_, c, call := mappedRoot(t)
	call("root", "run", "--bundle", c.Dir, c.ID).Fails(t, "/run/berth")
}

// Where the pid namespace is the caller's, he may not make a procfs of it: a kernel parameter is
// set through the user's own.
func TestMappedRootSetsSysctlBesideCallersProcesses(t *testing.T) {
	_, c, call := mappedRoot(t)
	c.Spec.Linux.Namespaces = without(c.Spec.Linux.Namespaces, specs.PIDNamespace)
	for i := range c.Spec.Mounts {
		if m := &c.Spec.Mounts[i]; m.Type == "proc" {
			*m = specs.Mount{Destination: "/proc", Source: "/proc", Type: "none", Options: []string{"rbind", "nosuid", "nodev", "noexec"}}
		}
	}
	c.Spec.Linux.Sysctl = map[string]string{"net.ipv4.ping_group_range": "0 0"}
	c.Spec.Process.Args = []string{"/bin/cat", "/proc/sys/net/ipv4/ping_group_range"}
	c.Write()
	if got := strings.Join(strings.Fields(call("somebody", "run", "--bundle", c.Dir, c.ID).OK(t).Stdout), " "); got != "0 0" {
		t.Errorf("the container's range is %q", got)
	}
}
