package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
	"github.com/berth-runtime/berth/test/inside/view"
)

// cgroupOwners looks at a container's cgroups from inside: who owns each file in them.
func cgroupOwners(t *testing.T, b *harness.Box, change func(*harness.Container)) (dirs map[string]view.File, files map[string][]view.File) {
	t.Helper()
	c := inUserNamespace(b)
	c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "nodev", "noexec"}})
	change(c)
	var paths []string
	for _, h := range harness.Hierarchies(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(h.Dir, "/sys/fs/cgroup"), "/")
		paths = append(paths, filepath.Join("/sys/fs/cgroup", name))
	}
	c.Spec.Process.Args = append([]string{"/inside", "look"}, paths...)
	for _, path := range paths {
		c.Spec.Process.Args = append(c.Spec.Process.Args, path+"/")
	}
	v := harness.ParseView(t, c.Run().OK(t).Stdout)
	return v.Files, v.Dirs
}

const nobody = 65534 // whom files of users outside of the mapping seem to belong to

// On version 1 nothing is given to the container: there a cgroup that belongs to a user harms the
// host.
func TestCgroupOwnershipOnVersion1(t *testing.T) {
	hierarchies := harness.Hierarchies(t)
	if !slices.ContainsFunc(hierarchies, func(h harness.Hierarchy) bool { return !h.Unified }) {
		harness.Skip(t, "needs a cgroup v1 hierarchy")
	}
	b := harness.New(t)
	dirs, files := cgroupOwners(t, b, func(*harness.Container) {})
	if len(dirs) == 0 || len(files) == 0 {
		t.Fatalf("nothing was looked at: %v, %v", dirs, files)
	}
	for path, f := range dirs {
		if f.Error != "" || f.UID != nobody {
			t.Errorf("%s is owned by %d (%s), want nobody who is mapped", path, f.UID, f.Error)
		}
	}
	for dir, list := range files {
		for _, f := range list {
			if f.UID != nobody {
				t.Errorf("%s%s is owned by %d", dir, f.Name, f.UID)
			}
		}
	}
}

// On version 2 the directory and the files that the kernel names are the container's, under the
// conditions of the specification; no other file is.
func TestCgroupOwnershipOnVersion2(t *testing.T) {
	hierarchies := harness.Hierarchies(t)
	if len(hierarchies) != 1 || !hierarchies[0].Unified {
		harness.Skip(t, "needs a host with cgroup v2 alone")
	}
	b := harness.New(t)
	const root = "/sys/fs/cgroup"
	list, err := os.ReadFile("/sys/kernel/cgroup/delegate")
	if err != nil {
		list = []byte("cgroup.procs cgroup.subtree_control cgroup.threads")
	}
	given := strings.Fields(string(list))
	dirs, files := cgroupOwners(t, b, func(*harness.Container) {})
	if f := dirs[root]; f.UID != 0 {
		t.Errorf("the folder is owned by %d", f.UID)
	}
	for _, f := range files[root+"/"] {
		want := uint32(nobody)
		if slices.Contains(given, f.Name) || f.Type == "dir" {
			want = 0
		}
		if f.UID != want {
			t.Errorf("%s is owned by %d, want %d", f.Name, f.UID, want)
		}
	}
	for name, change := range map[string]func(*harness.Container){
		"read-only mount": func(c *harness.Container) {
			m := &c.Spec.Mounts[len(c.Spec.Mounts)-1]
			m.Options = append(m.Options, "ro")
		},
		"the host's cgroup namespace": func(c *harness.Container) { harness.WithoutNamespace(c.Spec, specs.CgroupNamespace) },
	} {
		dirs, _ := cgroupOwners(t, b, change)
		if f := dirs[root]; f.UID != nobody {
			t.Errorf("%s: the folder is owned by %d", name, f.UID)
		}
	}
}

// The kernel's files are in the way of cgroups of their names, on version 1 in other hierarchies
// than on version 2. Nothing is made then, in any hierarchy, and nothing is taken away.
func TestCgroupNamedAsAFile(t *testing.T) {
	b := harness.New(t)
	path := demo(b)
	before := b.Cgroups()
	names := []string{"cgroup.procs"}
	if slices.ContainsFunc(harness.Hierarchies(t), func(h harness.Hierarchy) bool { return !h.Unified }) {
		names = append(names, "tasks")
	}
	for _, name := range names {
		for _, args := range [][]string{{"create", path + "/new/" + name}, {"create", path + "/" + name + "/new"}, {"create", path + "/" + name}, {"run", "--path", path + "/new/" + name, "true"}} {
			tool(b, args...).FailsWith(t, statusOfFailure(args[0]), name, "file which the kernel has in each cgroup")
			if after := b.Cgroups(); !slices.Equal(after, before) {
				t.Errorf("%q leaves %q, and there was %q", args, after, before)
			}
		}
		tool(b, "delete", "-r", "--force", path+"/"+name).Fails(t, name)
	}
}

// What others made is left alone, unless forced.
func TestCgroupOfSomebodyElse(t *testing.T) {
	b := harness.New(t)
	needCgroupTools(b)
	h := harness.Controller(t, "pids")
	path := "/" + b.Tag
	if err := os.Mkdir(filepath.Join(h.Dir, path), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tool(b, "delete", "-r", "--force", path) })
	for _, args := range [][]string{
		{"set", "pids.max=5", path}, {"exec", path, "true"}, {"classify", path, strconv.Itoa(os.Getpid())}, {"delete", path},
		{"create", "-g", "pids:" + path, "-a", "0:0"},
	} {
		r, code := tool(b, args...), statusOfFailure(args[0])
		if r.Code != code || !strings.Contains(r.Stderr, "not created by the caller") {
			t.Errorf("%q: status %d, want %d: %s", args, r.Code, code, r.Stderr)
		}
	}
	tool(b, "get", "-r", "pids.max", path).OK(t)
	// Children may be made, and are the maker's own.
	tool(b, "create", "-g", "pids:"+path+"/child").OK(t)
	tool(b, "set", "pids.max=5", path+"/child").OK(t)
	forced := "--force: changes " + path + ", which was not created by the caller"
	tool(b, "set", "--force", "pids.max=6", path).OK(t).Warns(t, forced)
	if got := fileOf(t, "pids", path, "pids.max", "pids.max"); got != "6" {
		t.Errorf("pids.max is %s after a forced set", got)
	}
	if r := tool(b, "exec", "--force", "-g", "pids:"+path+"/child", "true").OK(t); r.Stderr != "" {
		t.Errorf("of the caller's own cgroup it says %s", r.Stderr)
	}
	tool(b, "exec", "--force", "-g", "pids:"+path, "true").OK(t).Warns(t, forced)
	if r := tool(b, "delete", "-r", "--force", path).OK(t).Warns(t, forced); strings.Count(r.Stderr, "\n") != 1 {
		t.Errorf("it says more than once what it overrode:\n%s", r.Stderr)
	}
}

// statusOfFailure is what a cgroup tool exits with where it fails itself: one that runs a command
// passes on the command's status, of which 125 is none.
func statusOfFailure(tool string) int {
	if tool == "run" || tool == "exec" {
		return 125
	}
	return 1
}
