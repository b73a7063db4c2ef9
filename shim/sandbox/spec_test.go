package sandbox

import (
	"reflect"
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

func podWith(change func(*pod, *wire.LinuxPodSandboxConfig, *wire.PodNamespaces)) *pod {
	of := &wire.PodNamespaces{}
	linux := &wire.LinuxPodSandboxConfig{SecurityContext: &wire.PodSecurityContext{Namespaces: of}}
	p := &pod{id: "p", config: &wire.PodSandboxConfig{Hostname: "h", Linux: linux}, options: new(options.Options)}
	if change != nil {
		change(p, linux, of)
	}
	return p
}

func TestNamespacesOfAPod(t *testing.T) {
	for _, test := range []struct {
		what     string
		change   func(*pod, *wire.LinuxPodSandboxConfig, *wire.PodNamespaces)
		want     []specs.LinuxNamespace
		hostname string
	}{
		{"all its own", nil,
			[]specs.LinuxNamespace{{Type: "mount"}, {Type: "network"}, {Type: "uts"}, {Type: "pid"}, {Type: "ipc"}}, "h"},
		{"network that the client has made", func(p *pod, _ *wire.LinuxPodSandboxConfig, _ *wire.PodNamespaces) { p.netns = "/n" },
			[]specs.LinuxNamespace{{Type: "mount"}, {Type: "network", Path: "/n"}, {Type: "uts"}, {Type: "pid"}, {Type: "ipc"}}, "h"},
		{"host's network", func(_ *pod, _ *wire.LinuxPodSandboxConfig, of *wire.PodNamespaces) { of.Network = wire.NamespaceNode },
			[]specs.LinuxNamespace{{Type: "mount"}, {Type: "pid"}, {Type: "ipc"}}, ""},
		{"host's processes", func(_ *pod, _ *wire.LinuxPodSandboxConfig, of *wire.PodNamespaces) {
			of.Pid, of.IPC = wire.NamespaceNode, wire.NamespaceNode
		}, []specs.LinuxNamespace{{Type: "mount"}, {Type: "network"}, {Type: "uts"}}, "h"},
		{"processes of each container apart", func(_ *pod, _ *wire.LinuxPodSandboxConfig, of *wire.PodNamespaces) { of.Pid = 1 },
			[]specs.LinuxNamespace{{Type: "mount"}, {Type: "network"}, {Type: "uts"}, {Type: "pid"}, {Type: "ipc"}}, "h"},
		{"users of its own", func(_ *pod, _ *wire.LinuxPodSandboxConfig, of *wire.PodNamespaces) {
			of.User = &wire.PodUserNamespace{UIDs: []*wire.PodIDMapping{{HostID: 1000, Length: 5}}, GIDs: []*wire.PodIDMapping{{HostID: 2000, Length: 5}}}
		}, []specs.LinuxNamespace{{Type: "mount"}, {Type: "network"}, {Type: "uts"}, {Type: "pid"}, {Type: "ipc"}, {Type: "user"}}, "h"},
		{"host's users", func(_ *pod, _ *wire.LinuxPodSandboxConfig, of *wire.PodNamespaces) {
			of.User = &wire.PodUserNamespace{Mode: wire.NamespaceNode}
		}, []specs.LinuxNamespace{{Type: "mount"}, {Type: "network"}, {Type: "uts"}, {Type: "pid"}, {Type: "ipc"}}, "h"},
	} {
		s := podWith(test.change).spec()
		if !slices.Equal(s.Linux.Namespaces, test.want) || s.Hostname != test.hostname {
			t.Errorf("%s: %v, host name %q", test.what, s.Linux.Namespaces, s.Hostname)
		}
		// It must be a config that the engine takes, as it is written.
		if _, _, err := spec.ParseChecked(spec.Format(s, "")); err != nil {
			t.Errorf("%s: %v", test.what, err)
		}
	}
}

func TestUserNamespaceModes(t *testing.T) {
	for mode, fits := range map[int32]bool{wire.NamespacePod: true, 1: false, wire.NamespaceNode: true, 3: false, 4: false, -1: false} {
		err := podWith(func(_ *pod, _ *wire.LinuxPodSandboxConfig, of *wire.PodNamespaces) {
			of.User = &wire.PodUserNamespace{Mode: mode}
		}).check()
		if (err == nil) != fits {
			t.Errorf("mode %d: %v", mode, err)
		}
	}
}

func TestCgroupOfAPod(t *testing.T) {
	for _, test := range []struct {
		systemd      bool
		parent, want string
	}{
		{false, "", ""},
		{false, "/kubepods/burstable/pod1", "/kubepods/burstable/pod1/p"},
		{false, "kubepods", "/kubepods/p"},
		{true, "/kubepods.slice/kubepods-pod1.slice", "kubepods-pod1.slice:berth:p"},
		{true, "", ""},
	} {
		p := podWith(func(p *pod, linux *wire.LinuxPodSandboxConfig, _ *wire.PodNamespaces) {
			p.options.SystemdCgroup, linux.CgroupParent = test.systemd, test.parent
		})
		if got := p.spec().Linux.CgroupsPath; got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

// A pod of which nothing is known is one with everything its own.
func TestEmptyPod(t *testing.T) {
	p := &pod{id: "p", config: new(wire.PodSandboxConfig), options: new(options.Options)}
	if got, want := p.spec().Linux.Namespaces, podWith(nil).spec().Linux.Namespaces; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestLabelOfAPod(t *testing.T) {
	if got := label(&wire.PodSELinux{User: "u", Role: "r", Type: "t", Level: "s0:c1"}); got != "u:r:t:s0:c1" {
		t.Error(got)
	}
	if got := label(&wire.PodSELinux{Level: "s0"}) + label(nil); got != "" {
		t.Error(got)
	}
}
