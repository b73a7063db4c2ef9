package attacks

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// hostNodes are devices that no container has unless its config says so: a disk, and FUSE.
var hostNodes = []struct {
	name         string
	kind         uint32
	major, minor uint32
}{{"disk", unix.S_IFBLK, 7, 0}, {"fuse", unix.S_IFCHR, 10, 229}}

// deviceTries opens the nodes of the image, and others that it makes itself, and what every
// container has.
const deviceTries = "open-device=/img/disk open-device=/img/fuse mknod=/tmp/fuse,10,229 open-device=/tmp/fuse " +
	"open-device=/dev/null open-device=/dev/zero open-device=/dev/full open-device=/dev/random open-device=/dev/urandom open-device=/dev/ptmx"

// An image may hold nodes of the host's devices that everybody may write to, and CAP_MKNOD makes
// more. A config that says nothing of devices opens none of them, whatever enters the container,
// and however often its limits are changed.
func TestDevicesAreDeniedByDefault(t *testing.T) {
	b := harness.New(t)
	harness.Hierarchies(t)
	withNodes := func(args ...string) *harness.Container {
		c := b.Container(args...)
		c.WriteFile("/img/.keep", "", 0o644)
		for _, n := range hostNodes {
			node := c.Path("/img/" + n.name)
			check(t, unix.Mknod(node, n.kind|0o666, int(unix.Mkdev(n.major, n.minor))))
			check(t, unix.Chmod(node, 0o666))
			fd, err := unix.Open(node, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if err == unix.EPERM || err == unix.EACCES {
				harness.Skip(t, "needs a machine on which the test itself may open the device %d:%d: %v", n.major, n.minor, err)
			}
			if err == nil {
				unix.Close(fd)
			}
		}
		return c
	}
	count := 0
	denied := func(who, text string, mayMake bool) {
		t.Helper()
		for _, a := range harness.ParseAttempts(t, text) {
			want := ""
			if strings.Contains(a.What, "/img/") || strings.HasSuffix(a.What, "/tmp/fuse") || strings.HasPrefix(a.What, "mknod") && !mayMake {
				want = "EPERM"
			}
			if !mayMake && a.What == "open-device=/tmp/fuse" {
				want = "ENOENT"
			}
			if a.Errno != want {
				t.Errorf("%s: %s: %q, wanted %q", who, a.What, a.Errno, want)
			}
			count++
		}
	}
	words := append([]string{"/inside", "try"}, strings.Fields(deviceTries)...)
	rules := map[string]func(s *specs.Spec){
		"no resources": func(s *specs.Spec) { s.Linux.Resources = nil },
		"no rules":     func(s *specs.Spec) { s.Linux.Resources.Devices = nil },
		"one rule": func(s *specs.Spec) {
			major := int64(4)
			s.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{{Allow: true, Type: "c", Major: &major, Access: "rw"}}
		},
	}
	for name, change := range rules {
		for _, uid := range []uint32{0, 1000} {
			c := withNodes(words...)
			change(c.Spec)
			c.Spec.Process.User.UID = uid
			denied(name, c.Run().OK(t).Stdout, uid == 0)
		}
	}
	c := withNodes("/inside", "hang")
	c.Spec.Linux.Resources = nil
	c.RunDetached()
	denied("exec", c.Exec(nil, words...).OK(t).Stdout, true)
	check(t, unix.Unlink(c.Path("/tmp/fuse")))
	c.Command("update", []string{"--pids-limit", "100"}).Run().OK(t)
	denied("exec after an update", c.Exec(nil, words...).OK(t).Stdout, true)
	check(t, unix.Unlink(c.Path("/tmp/fuse")))
	update := c.Command("update", []string{"--resources", b.WriteFile("rules", `{"devices":[{"allow":true,"type":"c","major":4,"access":"rw"}]}`, 0o600)})
	update.Run().OK(t)
	denied("exec after an update of the rules", c.Exec(nil, words...).OK(t).Stdout, true)
	c.Delete("--force")
	c.WaitExit()
	harness.Report(t, "attacks", count)
}

// What a config lists as a node may be used without a rule for it, until one denies it. A
// privileged container allows all.
func TestListedDevicesAreAllowed(t *testing.T) {
	b := harness.New(t)
	harness.Hierarchies(t)
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	free := "" // what the kernel says where nobody denies it
	if err == nil {
		unix.Close(fd)
	} else if free = unix.ErrnoName(err.(unix.Errno)); free == "EPERM" {
		harness.Skip(t, "needs a machine on which the test itself may open /dev/fuse")
	}
	node := []specs.LinuxDevice{{Path: "/dev/fuse", Type: "c", Major: 10, Minor: 229}}
	for name, test := range map[string]struct {
		nodes     []specs.LinuxDevice
		resources *specs.LinuxResources
		errno     string
	}{
		"a node":                 {node, nil, free},
		"a node, and all denied": {node, &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Access: "rwm"}}}, "EPERM"},
		"all allowed":            {nil, &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}}, free},
		"nothing":                {nil, nil, "EPERM"},
	} {
		c := b.Container("/inside", "try", "open-device=/img/fuse")
		c.WriteFile("/img/.keep", "", 0o644)
		check(t, unix.Mknod(c.Path("/img/fuse"), unix.S_IFCHR|0o600, int(unix.Mkdev(10, 229))))
		c.Spec.Linux.Devices, c.Spec.Linux.Resources = test.nodes, test.resources
		tried := harness.ParseAttempts(t, c.Run().OK(t).Stdout)
		if got := tried["open-device=/img/fuse"].Errno; got != test.errno {
			t.Errorf("%s: %q, wanted %q", name, got, test.errno)
		}
	}
	harness.Report(t, "attacks", 4)
}

// A device that is bound from the host is its inode too. Where root inside has the owner's id, or
// the capabilities over it, what it does to that must not be done to everybody's.
func TestBoundDevicesLeaveTheHosts(t *testing.T) {
	harness.NeedNamespace(t, "user")
	b := harness.New(t)
	c := b.Container()
	c.Spec.Linux.Namespaces = append(c.Spec.Linux.Namespaces, specs.LinuxNamespace{Type: specs.UserNamespace})
	c.Spec.Linux.UIDMappings = []specs.LinuxIDMapping{{HostID: 0, ContainerID: 0, Size: 1000}}
	c.Spec.Linux.GIDMappings = c.Spec.Linux.UIDMappings
	all := append([]string{"CAP_FOWNER", "CAP_CHOWN"}, harness.DefaultCaps...)
	c.Spec.Process.Capabilities = &specs.LinuxCapabilities{Bounding: all, Effective: all, Permitted: all}
	c.Spec.Process.Args = []string{"/inside", "try", "write=/dev/null,lost", "open-device=/dev/zero", "open-device=/dev/full", "open-device=/dev/urandom"}
	var refused []string
	before := map[string]unix.Stat_t{}
	for _, name := range []string{"/dev/zero", "/dev/full", "/dev/urandom"} { // not /dev/null, which all need while this fails
		var st unix.Stat_t
		check(t, unix.Stat(name, &st))
		before[name] = st
		t.Cleanup(func() {
			unix.Chown(name, int(st.Uid), int(st.Gid))
			unix.Chmod(name, st.Mode&0o7777)
		})
		refused = append(refused, "chmod="+name+",1"+strconv.FormatUint(uint64(st.Mode&0o777), 8), "chown="+name+",0,1", "utimes="+name)
	}
	c.Spec.Process.Args = append(c.Spec.Process.Args, refused...)
	tried := harness.ParseAttempts(t, c.Run().OK(t).Stdout)
	for what, a := range tried {
		want := ""
		if slices.Contains(refused, what) {
			want = "EROFS"
		}
		if a.Errno != want {
			t.Errorf("%s: %q, wanted %q", what, a.Errno, want)
		}
	}
	for name, was := range before {
		var is unix.Stat_t
		check(t, unix.Stat(name, &is))
		if is.Mode != was.Mode || is.Uid != was.Uid || is.Gid != was.Gid {
			t.Errorf("the host's %s was %o %d:%d and is %o %d:%d", name, was.Mode, was.Uid, was.Gid, is.Mode, is.Uid, is.Gid)
		}
	}
	harness.Report(t, "attacks", len(refused))
}
