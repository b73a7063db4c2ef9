package plan

import (
	"path"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/host"
	"github.com/berth-runtime/berth/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Whatever cgroupsPath says, it is a complaint or a clean absolute path below the root of the hierarchies, or a unit and a slice
// with names that systemd takes.
func FuzzCgroupsPath(f *testing.F) {
	for _, seed := range []string{"", "/", "/a/b", "a", "a/../..", "/..", "//a", "a:b:c", "system.slice:berth:x", "-.slice:p:n", "::", "a.slice:b", "x\x00y", "/a b/ü", "user.slice:berth:../x"} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, text string, systemd bool) {
		s := &specs.Spec{Version: "1.2.0", Root: &specs.Root{Path: "rootfs"}, Process: &specs.Process{Args: []string{"x"}, Cwd: "/"},
			Linux: &specs.Linux{CgroupsPath: text, Namespaces: []specs.LinuxNamespace{{Type: specs.MountNamespace}}}}
		if _, err := spec.Check(s); err != nil {
			return
		}
		p, err := New(s, &host.Host{}, Options{ID: "id", Bundle: "/bundle", SystemdCgroup: systemd})
		if err != nil {
			return
		}
		c := &p.Cgroup
		if c.None {
			return
		}
		if at := c.Path; at != "" && (!strings.HasPrefix(at, "/") || path.Clean(at) != at || strings.ContainsAny(at, "\x00\n")) {
			t.Errorf("%q became the path %q", text, at)
		}
		if u := c.Unit; u != nil && (strings.ContainsAny(u.Unit, "/\x00\n") || u.Unit == "" || strings.ContainsAny(u.Slice, "/\x00\n")) {
			t.Errorf("%q became the unit %q in %q", text, u.Unit, u.Slice)
		}
	})
}
