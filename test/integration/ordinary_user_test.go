package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// An ordinary user's container: run, looked at from inside, with one id and with many.
func TestOrdinaryUserRuns(t *testing.T) {
	for _, subordinate := range []int{0, 65535} {
		t.Run(fmt.Sprintf("%d subordinate ids", subordinate), func(t *testing.T) {
			b := harness.New(t)
			u := b.AsOrdinaryUser(t, subordinate)
			c := u.Container()
			v := c.Look("/", "/dev/null", "/etc/passwd")
			maps := []string{fmt.Sprintf("0 %d 1", u.UID)}
			setgroups := "deny"
			if subordinate > 0 {
				maps, setgroups = append(maps, fmt.Sprintf("1 %d %d", u.First, subordinate)), "allow"
			}
			if !slices.Equal(v.UIDMap, maps) || !slices.Equal(v.GIDMap, maps) || v.Setgroup != setgroups {
				t.Errorf("maps %q and %q, setgroups %s; want %q, %s", v.UIDMap, v.GIDMap, v.Setgroup, maps, setgroups)
			}
			if v.Status["Uid"] != "0 0 0 0" || v.PID != 1 || v.Hostname != "berth-test" {
				t.Errorf("uid %s, pid %d, host name %s", v.Status["Uid"], v.PID, v.Hostname)
			}
			wantCaps(t, v, "Eff", harness.DefaultCaps...)
			if root := v.Files["/"]; root.UID != 0 {
				t.Errorf("the root is owned by %d", root.UID)
			}
			if f := v.Files["/etc/passwd"]; f.UID != 65534 {
				t.Errorf("a file of the host's root is owned by %d", f.UID)
			}
		})
	}
}

// With subordinate ids there are other users inside, and files that belong to them.
func TestOrdinaryUserOfOtherIds(t *testing.T) {
	b := harness.New(t)
	u := b.AsOrdinaryUser(t, 65535)
	c := u.Container("/bin/sh", "-c", "echo x > /tmp/mine; exec /inside look")
	c.Spec.Process.User = specs.User{UID: 1000, GID: 1001, AdditionalGids: []uint32{2000}}
	v := harness.ParseView(t, c.Run().OK(t).Stdout)
	if v.Status["Uid"] != "1000 1000 1000 1000" || v.Status["Gid"] != "1001 1001 1001 1001" || v.Status["Groups"] != "2000" {
		t.Errorf("uid %s, gid %s, groups %s", v.Status["Uid"], v.Status["Gid"], v.Status["Groups"])
	}
	if got := fileOwner(t, c.Path("tmp/mine")); got != u.First+999 {
		t.Errorf("what it made is owned by %d outside, want %d", got, u.First+999)
	}
	// An id that is not mapped is refused by its name.
	c = u.Container("/bin/true")
	c.Spec.Process.User.UID = 70000
	c.Run().Fails(t, "/process/user/uid", "70000")
}

// Ids that are not the user's are refused, with where it is said what is.
func TestOrdinaryUserOfIdsOfOthers(t *testing.T) {
	b := harness.New(t)
	u := b.AsOrdinaryUser(t, 10)
	c := u.Container("/bin/true")
	c.Spec.Linux.UIDMappings[1].HostID = 100000
	c.Run().Fails(t, "/linux/uidMappings", "newuidmap", "/etc/subuid")
	c = u.Container("/bin/true")
	c.Spec.Linux.GIDMappings[1].Size = 11
	c.Run().Fails(t, "/linux/gidMappings", "newgidmap", "/etc/sub")
}

// The whole life: create, start, exec, ps, pause where it can be, kill, delete; nothing is left,
// and nothing of it took root.
func TestOrdinaryUserLife(t *testing.T) {
	for _, subordinate := range []int{0, 100} {
		t.Run(strconv.Itoa(subordinate), func(t *testing.T) {
			b := harness.New(t)
			u := b.AsOrdinaryUser(t, subordinate)
			c := u.Container("/inside", "hang").Create()
			if s := c.State(); s.Status != "created" {
				t.Errorf("%+v", s)
			}
			c.Start()
			if got := fileOwner(t, procPath(c.PID, "ns")); got != u.UID && got != 0 {
				t.Errorf("the process belongs to %d", got)
			}
			if got := statusField(readFile(t, procPath(c.PID, "status")), "Uid"); !strings.HasPrefix(got, strconv.Itoa(u.UID)+"\t") {
				t.Errorf("the process runs as %s", got)
			}
			v := harness.ParseView(t, c.Exec(nil, "/inside", "look").OK(t).Stdout)
			if v.NS["user"] != processNamespaces(t, c.PID)["user"] || v.NS["mnt"] != processNamespaces(t, c.PID)["mnt"] {
				t.Errorf("exec is in %v", v.NS)
			}
			wantCaps(t, v, "Eff", harness.DefaultCaps...)
			if subordinate > 0 {
				v = harness.ParseView(t, c.Exec([]string{"--user", "7:8"}, "/inside", "look").OK(t).Stdout)
				if v.Status["Uid"] != "7 7 7 7" || v.Status["Gid"] != "8 8 8 8" {
					t.Errorf("exec as another: %s, %s", v.Status["Uid"], v.Status["Gid"])
				}
			}
			c.Command("delete", nil).Run().Fails(t, "running")
			c.Kill("KILL").WaitExit()
			c.Delete()
		})
	}
}

// Hooks, a terminal and bind mounts, as an ordinary user.
func TestOrdinaryUserHooks(t *testing.T) {
	b := harness.New(t)
	u := b.AsOrdinaryUser(t, 0)
	c := u.Container("/bin/true")
	c.WriteFile("said", "", 0o666)
	c.WriteFile("hook", "#!/bin/sh\necho $0 $(id -u) $(ls /proc | grep -c '^[0-9]') >> /said\n", 0o755)
	outside := b.WriteFile("outside", "", 0o666)
	script := b.WriteFile("script", "#!/bin/sh\nid -u >> "+outside+"\n", 0o755)
	env := []string{"PATH=/usr/bin:/bin", b.Mark()}
	c.Spec.Hooks = &specs.Hooks{
		CreateRuntime:   []specs.Hook{{Path: script, Env: env}},
		CreateContainer: []specs.Hook{{Path: script, Env: env}},
		StartContainer:  []specs.Hook{{Path: "/hook", Env: env}},
		Poststop:        []specs.Hook{{Path: script, Env: env}},
	}
	c.Run().OK(t)
	if got, want := strings.Fields(readFile(t, outside)), []string{strconv.Itoa(u.UID), "0", strconv.Itoa(u.UID)}; !slices.Equal(got, want) {
		t.Errorf("createRuntime, createContainer and poststop ran as %v, want %v", got, want)
	}
	if got := readFile(t, c.Path("said")); !strings.HasPrefix(got, "/hook 0 ") {
		t.Errorf("startContainer said %q", got)
	}
}

// Limits need cgroups of the user's own; without they are refused by name, and no limit at all is
// fine (the other tests).
func TestOrdinaryUserLimits(t *testing.T) {
	b := harness.New(t)
	h := harness.Controller(t, "pids")
	u := b.AsOrdinaryUser(t, 0)
	c := u.Container("/bin/true")
	c.Spec.Linux.Resources = &specs.LinuxResources{Pids: &specs.LinuxPids{Limit: ptr(int64(30))}}
	c.Run().Fails(t, wayToLimits(t))

	// What root has given to the user, he makes cgroups in, and changes.
	home := "/" + b.Tag + "-delegated"
	for _, hierarchy := range harness.Hierarchies(t) {
		delegate(t, u, hierarchy, home)
	}
	if _, err := os.Stat(filepath.Join(h.Dir, home, "pids.max")); err != nil {
		harness.Skip(t, "needs the pids controller in the cgroups below the root's")
	}
	// On version 2 only who is from inside a delegated one may move about in it.
	for _, hierarchy := range harness.Hierarchies(t) {
		if !hierarchy.Unified {
			continue
		}
		c = u.Container("/bin/true")
		c.Spec.Linux.CgroupsPath = home + "/outside"
		c.Run().Fails(t, "from inside a delegated one")
		caller := filepath.Join(hierarchy.Dir, home, "caller")
		if err := os.Mkdir(caller, 0o755); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(caller)
		for _, name := range []string{"", "cgroup.procs"} {
			if err := os.Chown(filepath.Join(caller, name), u.UID, u.UID); err != nil {
				t.Fatal(err)
			}
		}
		defer func(wrap []string) { b.Wrap = wrap }(b.Wrap)
		b.Wrap = append([]string{"/bin/sh", "-c", "echo $$ > " + caller + `/cgroup.procs && exec "$0" "$@"`}, b.Wrap...)
	}
	c = u.Container("/inside", "hang")
	c.Spec.Linux.CgroupsPath = home + "/box"
	c.Spec.Linux.Resources = &specs.LinuxResources{Pids: &specs.LinuxPids{Limit: ptr(int64(30))}}
	c.RunDetached()
	holds(t, c, "pids", "pids.max", "pids.max", "30", "30")
	update(c, "--pids-limit", "20").OK(t)
	holds(t, c, "pids", "pids.max", "pids.max", "20", "20")
	v := harness.ParseView(t, c.Exec(nil, "/inside", "look").OK(t).Stdout)
	if !slices.ContainsFunc(v.Cgroups, func(line string) bool { return strings.Contains(line, "pids:/") }) {
		t.Errorf("exec is in %v", v.Cgroups)
	}
	c.Kill("KILL").WaitExit()
	c.Delete()
	if _, err := os.Stat(filepath.Join(h.Dir, home, "box")); !os.IsNotExist(err) {
		t.Errorf("the cgroup is still there: %v", err)
	}
}

// Where root has given the user cgroups of version 1 alone, of all or of one controller, those are
// what the container has, limits and sees, beside a version 2 where it stays in its caller's.
func TestOrdinaryUserOfVersion1Alone(t *testing.T) {
	h := harness.Controller(t, "pids")
	all := harness.Hierarchies(t)
	if h.Unified || !slices.ContainsFunc(all, func(h harness.Hierarchy) bool { return h.Unified }) {
		harness.Skip(t, "needs a hybrid host, with the pids controller in version 1")
	}
	for name, given := range map[string]func(harness.Hierarchy) bool{
		"each":  func(one harness.Hierarchy) bool { return !one.Unified },
		"pids":  func(one harness.Hierarchy) bool { return one.Dir == h.Dir },
		"named": func(one harness.Hierarchy) bool { return one.Dir == h.Dir || filepath.Base(one.Dir) == "systemd" },
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			u := b.AsOrdinaryUser(t, 0)
			home := "/" + b.Tag + "-delegated"
			for _, one := range all {
				if given(one) {
					delegate(t, u, one, home)
				}
			}
			c := u.Container("/inside", "hang")
			c.Spec.Linux.CgroupsPath = home + "/box"
			c.Spec.Linux.Resources = &specs.LinuxResources{Pids: &specs.LinuxPids{Limit: ptr(int64(30))}}
			c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"ro", "nosuid", "noexec", "nodev"}})
			c.RunDetached()
			holds(t, c, "pids", "pids.max", "pids.max", "30", "30")
			if got := c.Exec(nil, "/bin/sh", "-c", "cat /sys/fs/cgroup/pids/pids.max").OK(t).Stdout; got != "30\n" {
				t.Errorf("it sees the limit %q", got)
			}
			c.Kill("KILL").WaitExit()
			c.Delete()
			if _, err := os.Stat(filepath.Join(h.Dir, home, "box")); !os.IsNotExist(err) {
				t.Errorf("the cgroup is still there: %v", err)
			}
		})
	}
}

// delegate makes a cgroup of one hierarchy and gives it to the user, as root does.
func delegate(t *testing.T, u *harness.OrdinaryUser, hierarchy harness.Hierarchy, home string) {
	t.Helper()
	dir := filepath.Join(hierarchy.Dir, home)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		// Version 1 lets nobody into a cpuset that is empty.
		if list, err := os.ReadFile(filepath.Join(hierarchy.Dir, name)); err == nil && !hierarchy.Unified {
			if err := os.WriteFile(filepath.Join(dir, name), list, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"", "cgroup.procs", "tasks", "cgroup.subtree_control", "cgroup.threads"} {
		if err := os.Chown(filepath.Join(dir, name), u.UID, u.UID); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

func fileOwner(t *testing.T, path string) int {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Sys().(*syscall.Stat_t).Uid)
}
