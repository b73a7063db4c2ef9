package integration

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// mappedRoot makes a container that needs no user namespace of its own, and calls for it by an ordinary user who is root
// of a user namespace, as Podman makes them: with no --root, and XDG_RUNTIME_DIR for a place of his own.
func mappedRoot(t *testing.T) (dir string, c *harness.Container, call func(user string, args ...string) harness.Result) {
	t.Helper()
	b := harness.New(t)
	harness.NeedNamespace(t, "user")
	const uid = 54321 // of nobody
	c = b.Container("/bin/sh", "-c", "id -u; cat /proc/self/cgroup")
	c.Spec.Linux.CgroupsPath, c.Spec.Linux.Resources = "", nil
	harness.Rootless(c.Spec)
	c.Spec.Linux.UIDMappings, c.Spec.Linux.GIDMappings = nil, nil
	c.Spec.Linux.Namespaces = withoutUserNamespace(c.Spec.Linux.Namespaces)
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

func withoutUserNamespace(list []specs.LinuxNamespace) (left []specs.LinuxNamespace) {
	for _, ns := range list {
		if ns.Type != specs.UserNamespace {
			left = append(left, ns)
		}
	}
	return left
}

// /run and the cgroups belong to the real root: the container is kept below XDG_RUNTIME_DIR, and goes without a cgroup.
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

// A whole system inside a user namespace has a /run of its own, and its root is called so. Here /run is not his.
func TestMappedRootOfWholeSystem(t *testing.T) {
	_, c, call := mappedRoot(t)
	call("root", "run", "--bundle", c.Dir, c.ID).Fails(t, "/run/berth")
}
