package plan

import (
	"path"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/engine/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Rules for devices are root's to make; who cannot make them is told, and the rest of the limits
// hold.
func TestDeviceRulesOfAnOrdinaryUser(t *testing.T) {
	pids := int64(7)
	s := &specs.Spec{Version: "1.2.0", Root: &specs.Root{Path: "rootfs"}, Process: &specs.Process{Args: []string{"x"}, Cwd: "/"}, Linux: &specs.Linux{
		Namespaces: []specs.LinuxNamespace{{Type: specs.MountNamespace}},
		Resources:  &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Access: "rwm"}}, Pids: &specs.LinuxPids{Limit: &pids}}}}
	for name, test := range map[string]struct {
		uid      int
		inUserNS bool
		rules    bool
	}{"root": {rules: true}, "ordinary user": {uid: 1000}, "root of a user namespace": {inUserNS: true}} {
		h := SomeHost()
		h.UID, h.InUserNS = test.uid, test.inUserNS
		p, err := New(s, h, Options{ID: "id", Bundle: "/bundle"})
		if err != nil {
			t.Fatal(err)
		}
		if rules := p.Cgroup.Devices != nil; rules != test.rules {
			t.Errorf("%s: rules for devices are planned: %t", name, rules)
		}
		if told := strings.Contains(strings.Join(p.Warnings, "\n"), "/linux/resources/devices: left out"); told == test.rules {
			t.Errorf("%s: warnings %q", name, p.Warnings)
		}
		if len(p.Cgroup.Writes) == 0 {
			t.Errorf("%s: the limit of processes is gone", name)
		}
	}
}

// Whatever cgroupsPath says, it is a complaint or a clean absolute path below the root of the
// hierarchies, or a unit and a slice with names that systemd takes.
func FuzzCgroupsPath(f *testing.F) {
	for _, seed := range []string{"", "/", "/a/b", "a", "a/../..", "/..", "//a", "a:b:c", "system.slice:berth:x", "-.slice:p:n", "::", "a.slice:b", "x\x00y", "/a b/ü", "user.slice:berth:../x",
		"user-1000.slice:docker:a+b", "kubepods.slice:x:kubepods-pod1.slice", "a--b.slice:p:n", "_a.slice:cpu.x:n@1", "a.slice:p:n@"} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	with, without := SystemdHost(f, "unified", 252), &host.Host{}
	f.Fuzz(func(t *testing.T, text string, systemd bool) {
		h := without
		if systemd {
			h = with
		}
		s := &specs.Spec{Version: "1.2.0", Root: &specs.Root{Path: "rootfs"}, Process: &specs.Process{Args: []string{"x"}, Cwd: "/"},
			Linux: &specs.Linux{CgroupsPath: text, Namespaces: []specs.LinuxNamespace{{Type: specs.MountNamespace}}}}
		if _, err := spec.Check(s); err != nil {
			return
		}
		p, err := New(s, h, Options{ID: "id", Bundle: "/bundle", SystemdCgroup: systemd})
		if err != nil {
			return
		}
		c := &p.Cgroup
		if c.None {
			return
		}
		if (c.Unit != nil) != systemd {
			t.Errorf("%q: systemd %v, unit %+v", text, systemd, c.Unit)
		}
		if at := c.Path; at != "" && (!strings.HasPrefix(at, "/") || path.Clean(at) != at || strings.ContainsAny(at, "\x00\n")) {
			t.Errorf("%q became the path %q", text, at)
		}
		if u := c.Unit; u != nil && (strings.ContainsAny(u.Unit, "/\x00\n") || u.Unit == "" || strings.ContainsAny(u.Slice, "/\x00\n")) {
			t.Errorf("%q became the unit %q in %q", text, u.Unit, u.Slice)
		}
	})
}

// The host's parent is for what names no place of its own, and not for what has been made.
func TestHostsParent(t *testing.T) {
	handed := SomeHost()
	handed.CgroupBase = "/user.slice/handed"
	p, err := New(&specs.Spec{}, handed, Options{ID: "demo", Parent: "/fleet"})
	if err != nil || p.Cgroup.Path != "/user.slice/handed/berth/demo" {
		t.Errorf("without a path below what was handed: %+v, %v", p, err)
	}
	// The host's setting is for what names no place of its own.
	for given, want := range map[string]string{"": "/fleet/demo", "a": "/fleet/a", "/a": "/a"} {
		p, err = New(&specs.Spec{Linux: &specs.Linux{CgroupsPath: given}}, SomeHost(), Options{ID: "demo", Parent: "/fleet"})
		if err != nil || p.Cgroup.Path != want {
			t.Errorf("%q below a parent of the host's: %s, %v; want %s", given, p.Cgroup.Path, err, want)
		}
		// One that has been made stays where it is, whatever the setting is now.
		p, err = New(&specs.Spec{Linux: &specs.Linux{CgroupsPath: given}}, SomeHost(), Options{ID: "demo", Placed: &Placed{Path: "/x/y"}})
		if err != nil || p.Cgroup.Path != "/x/y" {
			t.Errorf("%q, made at /x/y: %s, %v", given, p.Cgroup.Path, err)
		}
	}
}
