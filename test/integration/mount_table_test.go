package integration

import (
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
	"github.com/berth-runtime/berth/test/inside/view"
)

// mountsInside is what a container sees of its mounts, on a host whose mounts are shared, as
// systemd makes them.
func mountsInside(t *testing.T, c *harness.Container) []view.Mount {
	t.Helper()
	unshare := harness.NeedTool(t, "unshare", "util-linux")
	c.Spec.Process.Args = []string{"/bin/cat", "/proc/self/mountinfo"}
	run := c.Command("run", nil)
	run.Wrap = append(slices.Clone(run.Wrap), unshare, "--mount", "--propagation", "shared")
	return view.ParseMountinfo(run.Run().OK(t).Stdout)
}

// mountsAt are the mounts on a path and below it.
func mountsAt(t *testing.T, table []view.Mount, path string) []view.Mount {
	t.Helper()
	var found []view.Mount
	for _, m := range table {
		if m.Target == path || strings.HasPrefix(m.Target, strings.TrimSuffix(path, "/")+"/") {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		t.Fatalf("nothing is mounted on %s: %v", path, table)
	}
	return found
}

// What the host mounts below the root file system's directory later is none of the container's,
// unless its config asks for a slave.
func TestTheRootIsNotTheHostsPeer(t *testing.T) {
	for _, propagation := range []string{"", "private", "rprivate"} {
		c := harness.New(t).Container()
		c.Spec.Linux.RootfsPropagation = propagation
		if root := mountsAt(t, mountsInside(t, c), "/")[0]; len(root.Optional) > 0 {
			t.Errorf("rootfsPropagation %q: the root is %v", propagation, root.Optional)
		}
	}
}

// A mount of cgroups is as one that was made for the container: tied to none of the host's, and
// good for neither programs nor devices.
func TestMountsOfCgroupsHaveNoTies(t *testing.T) {
	for _, options := range [][]string{nil, {"rw"}, {"ro"}} {
		c := harness.New(t).Container()
		c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: options})
		for _, m := range mountsAt(t, mountsInside(t, c), "/sys/fs/cgroup") {
			if len(m.Optional) > 0 {
				t.Errorf("%v: %s is %v", options, m.Target, m.Optional)
			}
			for _, want := range []string{"nosuid", "nodev", "noexec"} {
				if !slices.Contains(m.Options, want) {
					t.Errorf("%v: %s is not %s: %v", options, m.Target, want, m.Options)
				}
			}
		}
	}
}

// Who asks for version 2 gets its one directory, also where version 1 is there too.
func TestMountOfCgroup2(t *testing.T) {
	hierarchies := harness.Hierarchies(t)
	if !slices.ContainsFunc(hierarchies, func(h harness.Hierarchy) bool { return h.Unified }) {
		harness.Skip(t, "needs a host with cgroup v2")
	}
	c := harness.New(t).Container()
	c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup2", Source: "cgroup"})
	found := mountsAt(t, mountsInside(t, c), "/sys/fs/cgroup")
	if len(found) != 1 || found[0].Type != "cgroup2" || found[0].Root != "/" {
		t.Errorf("mounted are %v", found)
	}
	c.Spec.Process.Args = []string{"/bin/cat", "/sys/fs/cgroup/cgroup.procs"}
	if got := c.Run().OK(t).Stdout; strings.TrimSpace(got) != "1" {
		t.Errorf("its processes are %q", got)
	}
}

// Message queues belong to the container's root, not to a user that it does not have.
func TestOwnerOfMessageQueues(t *testing.T) {
	harness.NeedNamespace(t, "user")
	c := harness.New(t).Container("/bin/stat", "-c", "%u", "/dev/mqueue")
	harness.UserNamespace(c.Spec)
	if !slices.ContainsFunc(c.Spec.Mounts, func(m specs.Mount) bool { return m.Type == "mqueue" }) {
		c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue"})
	}
	if got := strings.TrimSpace(c.Run().OK(t).Stdout); got != "0" {
		t.Errorf("/dev/mqueue belongs to %s", got)
	}
}

// Without a devpts of the container's, what mounts one later finds the link to it.
func TestPtmxWithoutPts(t *testing.T) {
	c := harness.New(t).Container("/bin/readlink", "/dev/ptmx")
	c.Spec.Mounts = slices.DeleteFunc(c.Spec.Mounts, func(m specs.Mount) bool { return m.Destination == "/dev/pts" })
	if got := strings.TrimSpace(c.Run().OK(t).Stdout); got != "pts/ptmx" {
		t.Errorf("/dev/ptmx leads to %q", got)
	}
}
