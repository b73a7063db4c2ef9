package integration

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// inUserNamespace is a container whose root is uid 100000 outside, on files of that owner.
func inUserNamespace(b *harness.Box, args ...string) *harness.Container {
	b.T.Helper()
	harness.NeedNamespace(b.T, "user")
	c := b.Container(args...)
	harness.UserNamespace(c.Spec)
	return c
}

func TestUserNamespace(t *testing.T) {
	b := harness.New(t)
	v := inUserNamespace(b).Look("/", "/dev/null", "/dev/pts/ptmx", "/etc/passwd")
	if v.NS["user"] == processNamespaces(t, os.Getpid())["user"] {
		t.Error("the user namespace is the host's")
	}
	if !slices.Equal(v.UIDMap, []string{"0 100000 65536"}) || !slices.Equal(v.GIDMap, []string{"0 100000 65536"}) {
		t.Errorf("maps %q %q", v.UIDMap, v.GIDMap)
	}
	if v.Status["Uid"] != "0 0 0 0" || v.Status["Gid"] != "0 0 0 0" {
		t.Errorf("uid %s, gid %s", v.Status["Uid"], v.Status["Gid"])
	}
	// The files are the real root's, which is nobody here.
	if f := v.Files["/etc/passwd"]; f.UID != 65534 {
		t.Errorf("%+v", f)
	}
	wantCaps(t, v, "Eff", harness.DefaultCaps...)
}

// The devices are bind mounts of the host's: a device that is made in a user namespace can't be
// opened.
func TestUserNamespaceDevices(t *testing.T) {
	b := harness.New(t)
	c := inUserNamespace(b)
	words := []string{"write=/dev/null,x", "open-device=/dev/zero", "open-device=/dev/full", "open-device=/dev/random", "open-device=/dev/urandom", "open-device=/dev/ptmx"}
	harness.Allowed(t, c.Try(words...), words...)
}

// A listed device is the host's own, if it is what was asked for; a pipe is made.
func TestUserNamespaceListedDevices(t *testing.T) {
	b := harness.New(t)
	c := inUserNamespace(b)
	c.Spec.Linux.Devices = []specs.LinuxDevice{{Path: "/dev/null", Type: "c", Major: 1, Minor: 3}, {Path: "/dev/pipe", Type: "p"}}
	v := c.Look("/dev/null", "/dev/pipe")
	if f := v.Files["/dev/null"]; f.Type != "char" || f.Major != 1 || f.Minor != 3 {
		t.Errorf("/dev/null is %+v", f)
	}
	if f := v.Files["/dev/pipe"]; f.Type != "fifo" {
		t.Errorf("/dev/pipe is %+v", f)
	}
}

// What the host has elsewhere, with another mode or owner, or not at all is made for the container.
func TestUserNamespaceMadeDevices(t *testing.T) {
	b := harness.New(t)
	c := inUserNamespace(b)
	mode, uid, gid := os.FileMode(0o640), uint32(7), uint32(8)
	c.Spec.Linux.Devices = []specs.LinuxDevice{
		{Path: "/dev/berth-nowhere", Type: "c", Major: 1, Minor: 3},
		{Path: "/dev/deep/zero", Type: "u", Major: 1, Minor: 5, FileMode: &mode, UID: &uid, GID: &gid},
		{Path: "/dev/full", Type: "c", Major: 1, Minor: 7, FileMode: &mode, GID: &gid},
	}
	host := nodeOf(t, "/dev/full")
	v := c.Look("/dev/berth-nowhere", "/dev/deep/zero", "/dev/full")
	for _, d := range c.Spec.Linux.Devices {
		f := v.Files[d.Path]
		wantMode, wantUID, wantGID := uint32(0o666), uint32(0), uint32(0)
		if d.FileMode != nil {
			wantMode = uint32(*d.FileMode)
		}
		if d.UID != nil {
			wantUID = *d.UID
		}
		if d.GID != nil {
			wantGID = *d.GID
		}
		if f.Type != "char" || int64(f.Major) != d.Major || int64(f.Minor) != d.Minor || uint32(f.Mode) != wantMode || f.UID != wantUID || f.GID != wantGID {
			t.Errorf("%s is %+v", d.Path, f)
		}
	}
	words := []string{"open-device=/dev/berth-nowhere", "open-device=/dev/deep/zero", "open-device=/dev/full"}
	harness.Allowed(t, c.Try(words...), words...)
	if after := nodeOf(t, "/dev/full"); after != host {
		t.Errorf("the host's /dev/full is %+v, and was %+v", after, host)
	}
	c.WriteFile("taken", "a file", 0o644)
	c.Spec.Linux.Devices = append(c.Spec.Linux.Devices, specs.LinuxDevice{Path: "/taken", Type: "c", Major: 1, Minor: 9})
	c.Run().Fails(t, "/linux/devices/3", "/taken", "another file is there already")
	unmapped := uint32(70000)
	c.Spec.Linux.Devices[1].UID = &unmapped
	c.Run().Fails(t, "/linux/devices/1", "owner 70000:8 is not mapped")
}

// nodeOf is what a container could have changed of a file of the host's.
func nodeOf(t *testing.T, name string) [4]uint32 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil {
		t.Fatal(err)
	}
	return [4]uint32{st.Mode, st.Uid, st.Gid, uint32(st.Rdev)}
}

func TestUserNamespaceIsSeenFromOutside(t *testing.T) {
	b := harness.New(t)
	c := inUserNamespace(b, "/inside", "hang")
	c.Spec.Process.User.UID, c.Spec.Process.User.GID = 7, 8
	c.RunDetached()
	status := readFile(t, procPath(c.PID, "status"))
	if got := statusField(status, "Uid"); !strings.HasPrefix(got, "100007\t") {
		t.Errorf("uid outside %q", got)
	}
	if got := statusField(status, "Gid"); !strings.HasPrefix(got, "100008\t") {
		t.Errorf("gid outside %q", got)
	}
}

// The owners of the root's files stay who they are, to the host and, mapped, to the container.
func TestUserNamespaceLeavesTheOwnersOfFiles(t *testing.T) {
	b := harness.New(t)
	c := inUserNamespace(b, "/inside", "look", "/etc/owned", "/etc/passwd")
	c.WriteFile("etc/owned", "", 0o644)
	if err := os.Chown(c.Path("etc/owned"), 100005, 100006); err != nil {
		t.Fatal(err)
	}
	owners := func() (list [][2]uint32) {
		for _, name := range []string{"etc/owned", "etc/passwd", "etc", ""} {
			var st unix.Stat_t
			if err := unix.Lstat(c.Path(name), &st); err != nil {
				t.Fatal(err)
			}
			list = append(list, [2]uint32{st.Uid, st.Gid})
		}
		return list
	}
	before := owners()
	v := harness.ParseView(t, c.Run().OK(t).Stdout)
	if after := owners(); !slices.Equal(before, after) {
		t.Errorf("owners %v, and were %v", after, before)
	}
	if f := v.Files["/etc/owned"]; f.UID != 5 || f.GID != 6 {
		t.Errorf("inside it belongs to %d:%d", f.UID, f.GID)
	}
	if f := v.Files["/etc/passwd"]; f.UID != 65534 {
		t.Errorf("inside a file of the host's root belongs to %d", f.UID)
	}
}

// The kernel takes up to 340 lines of mappings, if they fit into a page.
func TestUserNamespaceManyMappings(t *testing.T) {
	b := harness.New(t)
	c := inUserNamespace(b)
	var ids []specs.LinuxIDMapping
	for i := range uint32(340) {
		ids = append(ids, specs.LinuxIDMapping{ContainerID: i, HostID: 1000 + 2*i, Size: 1})
	}
	c.Spec.Linux.UIDMappings, c.Spec.Linux.GIDMappings = ids, ids
	if v := c.Look(); len(v.UIDMap) != 340 || len(v.GIDMap) != 340 {
		t.Errorf("%d and %d mappings", len(v.UIDMap), len(v.GIDMap))
	}
	c.Spec.Linux.UIDMappings = append(ids, specs.LinuxIDMapping{ContainerID: 5000, HostID: 5000, Size: 1})
	c.Run().Fails(t, "/linux/uidMappings")
}

func TestUserNamespaceMappingsWrong(t *testing.T) {
	for name, ids := range map[string][]specs.LinuxIDMapping{
		"none":                    nil,
		"size 0":                  {{ContainerID: 0, HostID: 1, Size: 0}},
		"overlapping inside":      {{ContainerID: 0, HostID: 1000, Size: 10}, {ContainerID: 5, HostID: 2000, Size: 10}},
		"overlapping outside":     {{ContainerID: 0, HostID: 1000, Size: 10}, {ContainerID: 20, HostID: 1005, Size: 10}},
		"over the end of the ids": {{ContainerID: 0, HostID: 4294967290, Size: 100}},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := inUserNamespace(b, "/bin/true")
			c.Spec.Linux.UIDMappings = ids
			c.Run().Fails(t, "/linux/uidMappings")
		})
	}
	b := harness.New(t)
	c := inUserNamespace(b, "/bin/true")
	c.Spec.Linux.GIDMappings = nil
	c.Run().Fails(t, "/linux/gidMappings", "no group")
}

func TestJoinUserNamespace(t *testing.T) {
	b := harness.New(t)
	pid := sleeperInUserNamespace(b)
	c := b.Container()
	harness.NamespacePath(c.Spec, specs.UserNamespace, procPath(pid, "ns/user"))
	v := c.Look()
	if theirs := processNamespaces(t, pid)["user"]; v.NS["user"] != theirs {
		t.Errorf("user namespace %s, want %s", v.NS["user"], theirs)
	}
	if v.Status["Uid"] != "0 0 0 0" || !slices.Equal(v.UIDMap, []string{"0 100000 65536"}) {
		t.Errorf("uid %s, map %q", v.Status["Uid"], v.UIDMap)
	}
}

// The mappings are the namespace's. containerd gives them beside the path, so the same ones are
// fine; others than it has are a contradiction, which the engine may not pass over.
func TestJoinUserNamespaceWithMappings(t *testing.T) {
	b := harness.New(t)
	pid := sleeperInUserNamespace(b)
	c := b.Container()
	harness.UserNamespace(c.Spec)
	harness.NamespacePath(c.Spec, specs.UserNamespace, procPath(pid, "ns/user"))
	if v := c.Look(); v.Status["Uid"] != "0 0 0 0" {
		t.Errorf("uid %s", v.Status["Uid"])
	}
	c.Spec.Linux.UIDMappings = []specs.LinuxIDMapping{{ContainerID: 0, HostID: 4711, Size: 1}}
	c.Run().Fails(t, "/linux/uidMappings")
}

func TestExecInUserNamespace(t *testing.T) {
	b := harness.New(t)
	c := inUserNamespace(b, "/inside", "hang").RunDetached()
	v := harness.ParseView(t, c.Exec(nil, "/inside", "look").OK(t).Stdout)
	if !slices.Equal(v.UIDMap, []string{"0 100000 65536"}) || v.Status["Uid"] != "0 0 0 0" {
		t.Errorf("uid %s, map %q", v.Status["Uid"], v.UIDMap)
	}
}

func TestUserNamespaceTerminal(t *testing.T) {
	b := harness.New(t)
	c := inUserNamespace(b, "/bin/sh", "-c", "tty && stat -c '%u %g' /proc/self/fd/0 -L")
	c.Spec.Process.Terminal = true
	s := b.FDSocket("console.sock")
	c.RunDetached("--console-socket", s.Path)
	master := s.ReceiveTerminal()
	if got := master.All(); !strings.Contains(got, "/dev/pts/0") || !strings.Contains(got, "0 5") {
		t.Errorf("%q", got)
	}
	c.WaitExit()
}

func TestUserNamespaceHooksAreRoot(t *testing.T) {
	b := harness.New(t)
	h := withHooks(b, inUserNamespace(b, "/bin/true"))
	if err := os.Chmod(h.calls, 0o666); err != nil {
		t.Fatal(err)
	}
	h.Run().OK(t)
	host := processNamespaces(t, os.Getpid())["user"]
	for _, call := range h.recorded() {
		kind := call.Name[:len(call.Name)-2]
		inside := kind == "createContainer" || kind == "startContainer"
		if same := call.View.NS["user"] == host; same == inside {
			t.Errorf("%s: user namespace %s, the host's is %s", call.Name, call.View.NS["user"], host)
		}
		if call.View.Status["Uid"] != "0 0 0 0" {
			t.Errorf("%s: uid %s", call.Name, call.View.Status["Uid"])
		}
	}
}

// sleeperInUserNamespace starts a process of the test's own in a user namespace with the usual
// mapping.
func sleeperInUserNamespace(b *harness.Box) int {
	b.T.Helper()
	harness.NeedNamespace(b.T, "user")
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 100000, Size: 65536}}
	cmd := exec.Command(harness.Helper(b.T), "hang")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true}
	if err := cmd.Start(); err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(func() {
		cmd.Process.Kill()
		if err := cmd.Wait(); err == nil {
			b.T.Error("process " + strconv.Itoa(cmd.Process.Pid) + " ended by itself")
		}
	})
	return cmd.Process.Pid
}
