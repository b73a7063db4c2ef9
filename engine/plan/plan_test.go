package plan

import (
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/caps"
	"github.com/berth-runtime/berth/internal/ptr"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// SomeHost is a host that no test depends on being.
func SomeHost() *host.Host {
	return &host.Host{Layout: ledger.Layout{Unified: []string{"cpu", "memory", "pids"}}}
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestCgroupPath(t *testing.T) {
	for _, test := range []struct{ path, want, at string }{
		{"/a/b", "/a/b", "/linux/cgroupsPath"},
		{"a/b", "/berth/a/b", "/linux/cgroupsPath"},
		{"/a//b/./c/", "/a/b/c", "/linux/cgroupsPath"},
		{"../../a", "/berth/a", "/linux/cgroupsPath"},
		{"", "/berth/demo", ""},
	} {
		s := &specs.Spec{Linux: &specs.Linux{CgroupsPath: test.path}}
		p, err := New(s, SomeHost(), Options{ID: "demo", Bundle: "/bundle"})
		if err != nil {
			t.Fatal(err)
		}
		if p.Cgroup.Path != test.want || p.Cgroup.At != test.at || p.Cgroup.None {
			t.Errorf("%q: %+v", test.path, p.Cgroup)
		}
	}
	// What an ordinary user has been handed is not left by a relative path.
	handed := SomeHost()
	handed.CgroupBase = "/user.slice/handed"
	p, err := New(&specs.Spec{Linux: &specs.Linux{CgroupsPath: "../../a"}}, handed, Options{ID: "demo"})
	if err != nil || p.Cgroup.Path != "/user.slice/handed/a" {
		t.Errorf("below what was handed: %+v, %v", p, err)
	}
	p, err = New(&specs.Spec{Linux: &specs.Linux{CgroupsPath: "/a"}}, SomeHost(), Options{ID: "demo", NoCgroup: true})
	if err != nil || !p.Cgroup.None || p.Cgroup.Path != "" {
		t.Errorf("without cgroups: %+v, %v", p.Cgroup, err)
	}
}

func TestCgroupResources(t *testing.T) {
	s := &specs.Spec{Linux: &specs.Linux{Resources: &specs.LinuxResources{
		Memory:  &specs.LinuxMemory{Limit: ptr.To(int64(1 << 20))},
		Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}},
	}}}
	p, err := New(s, SomeHost(), Options{ID: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Cgroup.Writes) != 1 || p.Cgroup.Writes[0].File != "memory.max" || p.Cgroup.Writes[0].Pointer != "/memory/limit" {
		t.Errorf("writes %+v", p.Cgroup.Writes)
	}
	if p.Cgroup.Devices == nil || !slices.ContainsFunc(p.Cgroup.Devices.Rules(), func(r device.Rule) bool { return strings.Contains(r.String(), "1:3") }) {
		t.Errorf("devices %+v: /dev/null is to be had whatever the config says", p.Cgroup.Devices)
	}

	s.Linux.Resources.Network = &specs.LinuxNetwork{ClassID: ptr.To(uint32(1))}
	_, err = New(s, SomeHost(), Options{ID: "demo"})
	var list spec.Errors
	if !errors.As(err, &list) || len(list) != 1 || list[0].Pointer != "/linux/resources/network/classID" {
		t.Errorf("a field that this host can't honour: %v", err)
	}
}

func TestNamespaces(t *testing.T) {
	types := []struct {
		kind specs.LinuxNamespaceType
		flag uintptr
	}{
		{specs.PIDNamespace, unix.CLONE_NEWPID}, {specs.NetworkNamespace, unix.CLONE_NEWNET}, {specs.MountNamespace, unix.CLONE_NEWNS},
		{specs.IPCNamespace, unix.CLONE_NEWIPC}, {specs.UTSNamespace, unix.CLONE_NEWUTS}, {specs.UserNamespace, unix.CLONE_NEWUSER},
		{specs.CgroupNamespace, unix.CLONE_NEWCGROUP}, {specs.TimeNamespace, unix.CLONE_NEWTIME},
	}
	var list []specs.LinuxNamespace
	for i, n := range types {
		if flag := CloneFlag(n.kind); flag != n.flag {
			t.Errorf("%s: %#x", n.kind, flag)
		}
		list = append(list, specs.LinuxNamespace{Type: n.kind})
		if i%2 == 1 {
			list[i].Path = "/proc/1/ns/x"
		}
	}
	if CloneFlag("what") != 0 {
		t.Error("a namespace type that there is none of has a flag")
	}
	p := &Plan{Namespaces: namespacesOf(list)}
	for i, n := range types {
		got := p.Namespace(n.kind)
		if got == nil || got.Flag != n.flag || got.Path != list[i].Path || p.Makes(n.kind) != (list[i].Path == "") {
			t.Errorf("%s: %+v", n.kind, got)
		}
	}
	same(t, p.Namespaces[3].At, "/linux/namespaces/3")
	if empty := (&Plan{}); empty.Namespace(specs.PIDNamespace) != nil || empty.Makes(specs.PIDNamespace) {
		t.Error("a namespace that the config doesn't name is ours")
	}
}

func TestTimeOffsets(t *testing.T) {
	for _, test := range []struct {
		offsets map[string]specs.LinuxTimeOffset
		want    string
	}{
		{nil, ""},
		{map[string]specs.LinuxTimeOffset{"boottime": {Secs: -5}}, "boottime -5 0\n"},
		{map[string]specs.LinuxTimeOffset{"boottime": {Secs: 1}, "monotonic": {Secs: 2, Nanosecs: 3}}, "monotonic 2 3\nboottime 1 0\n"},
	} {
		same(t, timeOffsets(test.offsets), test.want)
	}
}

// What works on files of the host needs a mount namespace.
func TestMountNamespaceIsNeeded(t *testing.T) {
	for name, s := range map[string]*specs.Spec{
		"mounts":        {Mounts: []specs.Mount{{Destination: "/tmp", Type: "tmpfs"}}},
		"maskedPaths":   {Linux: &specs.Linux{MaskedPaths: []string{"/proc/kcore"}}},
		"readonlyPaths": {Linux: &specs.Linux{ReadonlyPaths: []string{"/proc/sys"}}},
	} {
		_, err := New(s, SomeHost(), Options{ID: "demo"})
		var list spec.Errors
		if !errors.As(err, &list) || list[0].Pointer != "/linux/namespaces" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPathsAndSysctls(t *testing.T) {
	same(t, pathsOf([]string{"/proc/kcore", "proc/../sys/"}, "/linux/maskedPaths/"),
		[]Path{{"/proc/kcore", "/linux/maskedPaths/0"}, {"/sys", "/linux/maskedPaths/1"}})
	same(t, sysctlsOf(map[string]string{"net.ipv4.ip_forward": "1", "net.ipv4.conf.eth0/100.forwarding": "0", "kernel/msgmax": "2"}), []Setting{
		{"kernel/msgmax", "2", "/linux/sysctl/kernel~1msgmax"},
		{"net/ipv4/conf/eth0.100/forwarding", "0", "/linux/sysctl/net.ipv4.conf.eth0~1100.forwarding"},
		{"net/ipv4/ip_forward", "1", "/linux/sysctl/net.ipv4.ip_forward"},
	})
}

func TestRoot(t *testing.T) {
	for _, test := range []struct {
		root        *specs.Root
		propagation string
		want        Root
	}{
		{&specs.Root{Path: "rootfs"}, "", Root{Path: "/bundle/rootfs", Propagation: unix.MS_SLAVE | unix.MS_REC}},
		{&specs.Root{Path: "/srv/root", Readonly: true}, "shared", Root{Path: "/srv/root", Readonly: true, Propagation: unix.MS_SHARED}},
		{&specs.Root{Path: "."}, "runbindable", Root{Path: "/bundle", Propagation: unix.MS_UNBINDABLE | unix.MS_REC}},
	} {
		test.want.At = "/root"
		same(t, rootOf(test.root, test.propagation, "/bundle"), test.want)
	}
}

func TestDevices(t *testing.T) {
	mode := func(m fs.FileMode) *fs.FileMode { return &m }
	defaults := len(defaultDevices)
	for _, test := range []struct {
		name   string
		list   []specs.LinuxDevice
		mounts []Mount
		userNS bool
		count  int
		want   Device // the last of them
	}{
		{name: "none", count: defaults, want: Device{Path: "/dev/tty", Type: 'c', Major: 5, Mode: 0o666}},
		{name: "none in a user namespace", userNS: true, count: defaults, want: Device{Path: "/dev/tty", Type: 'c', Major: 5, Mode: 0o666, Bind: true}},
		{name: "fuse", list: []specs.LinuxDevice{{Path: "/dev/fuse", Type: "c", Major: 10, Minor: 229, FileMode: mode(0o660), UID: ptr.To(uint32(1)), GID: ptr.To(uint32(2))}},
			count: defaults + 1, want: Device{Path: "/dev/fuse", Type: 'c', Major: 10, Minor: 229, Mode: 0o660, UID: 1, GID: 2, Own: true, At: "/linux/devices/0"}},
		{name: "unbuffered", list: []specs.LinuxDevice{{Path: "/dev/a", Type: "u", Major: 1, Minor: 2}},
			count: defaults + 1, want: Device{Path: "/dev/a", Type: 'c', Major: 1, Minor: 2, Mode: 0o666, At: "/linux/devices/0"}},
		{name: "fifo outside of /dev", list: []specs.LinuxDevice{{Path: "/run//pipe", Type: "p"}},
			count: defaults + 1, want: Device{Path: "/run/pipe", Type: 'p', Mode: 0o666, At: "/linux/devices/0"}},
		{name: "fifo in a user namespace", userNS: true, list: []specs.LinuxDevice{{Path: "/dev/pipe", Type: "p"}},
			count: defaults + 1, want: Device{Path: "/dev/pipe", Type: 'p', Mode: 0o666, At: "/linux/devices/0"}},
		{name: "instead of a default", list: []specs.LinuxDevice{{Path: "/dev/./null", Type: "c", Major: 1, Minor: 3, FileMode: mode(0o600)}},
			count: defaults, want: Device{Path: "/dev/null", Type: 'c', Major: 1, Minor: 3, Mode: 0o600, Own: true, At: "/linux/devices/0"}},
		// A bind mounted /dev is not ours, but what is elsewhere is ours.
		{name: "foreign /dev", mounts: []Mount{{Destination: "/dev", Bind: true}},
			list:  []specs.LinuxDevice{{Path: "/dev/fuse", Type: "c", Major: 10, Minor: 229}, {Path: "/opt/x", Type: "b", Major: 8}},
			count: 1, want: Device{Path: "/opt/x", Type: 'b', Major: 8, Mode: 0o666, At: "/linux/devices/1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := devicesOf(test.list, test.mounts, test.userNS)
			if len(got) != test.count {
				t.Fatalf("%d devices: %+v", len(got), got)
			}
			same(t, got[len(got)-1], test.want)
		})
	}
}

func TestLinks(t *testing.T) {
	if got := linksOf(nil); len(got) != len(defaultLinks) || got[0] != (Link{"/dev/fd", "/proc/self/fd"}) {
		t.Errorf("%+v", got)
	}
	got := linksOf([]Mount{{Destination: "/dev/pts", Type: "devpts"}})
	if got[len(got)-1] != (Link{"/dev/ptmx", "pts/ptmx"}) {
		t.Errorf("with /dev/pts: %+v", got)
	}
	if len(linksOf(nil)) != len(defaultLinks) {
		t.Error("the list of defaults has grown")
	}
	if got := linksOf([]Mount{{Destination: "/dev", Bind: true}}); got != nil {
		t.Errorf("in a bind mounted /dev: %+v", got)
	}
}

func TestCapabilities(t *testing.T) {
	set := func(names ...string) caps.Set {
		s, unknown := caps.SetOf(names)
		if len(unknown) > 0 {
			t.Fatal(unknown)
		}
		return s
	}
	for _, test := range []struct {
		name                                                 string
		in                                                   specs.LinuxCapabilities
		bounding, effective, permitted, inheritable, ambient caps.Set
	}{
		{name: "as it is", in: specs.LinuxCapabilities{Bounding: []string{"CAP_KILL", "CAP_CHOWN"}, Permitted: []string{"CAP_KILL"}, Effective: []string{"CAP_KILL"}},
			bounding: set("CAP_KILL", "CAP_CHOWN"), permitted: set("CAP_KILL"), effective: set("CAP_KILL")},
		{name: "ambient without inheritable", in: specs.LinuxCapabilities{Permitted: []string{"CAP_KILL"}, Ambient: []string{"CAP_KILL"}},
			permitted: set("CAP_KILL")},
		{name: "ambient without permitted", in: specs.LinuxCapabilities{Inheritable: []string{"CAP_KILL"}, Ambient: []string{"CAP_KILL"}},
			inheritable: set("CAP_KILL")},
		{name: "ambient with both", in: specs.LinuxCapabilities{Permitted: []string{"CAP_KILL", "CAP_CHOWN"}, Inheritable: []string{"CAP_KILL"}, Ambient: []string{"CAP_KILL", "CAP_CHOWN"}},
			permitted: set("CAP_KILL", "CAP_CHOWN"), inheritable: set("CAP_KILL"), ambient: set("CAP_KILL")},
		{name: "unknown", in: specs.LinuxCapabilities{Bounding: []string{"CAP_FUTURE", "CAP_KILL"}}, bounding: set("CAP_KILL")},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, problems := NewProcess(&specs.Process{Capabilities: &test.in}, "/process")
			if len(problems) > 0 {
				t.Fatalf("%+v, %v", p, problems)
			}
			got := [...]caps.Set{p.Bounding, p.Effective, p.Permitted, p.Inheritable, p.Ambient}
			want := [...]caps.Set{test.bounding, test.effective, test.permitted, test.inheritable, test.ambient}
			if got != want {
				t.Errorf("got %x, want %x", got, want)
			}
		})
	}
	if p, _ := NewProcess(&specs.Process{}, "/process"); p.Bounding|p.Effective|p.Permitted|p.Inheritable|p.Ambient != 0 {
		t.Errorf("without a capabilities object it has some: %+v", p)
	}
}

func TestProcess(t *testing.T) {
	p, problems := NewProcess(&specs.Process{
		Args: []string{"sh"}, Cwd: "/a/../b/", NoNewPrivileges: true,
		User:       specs.User{UID: 1, GID: 2, AdditionalGids: []uint32{3}, Umask: ptr.To(uint32(0o7022))},
		Rlimits:    []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Soft: 1, Hard: 2}, {Type: "RLIMIT_WHAT"}, {Type: "NOFILE"}, {Type: "RLIMIT_RTTIME", Soft: 3, Hard: 4}},
		Scheduler:  &specs.Scheduler{Policy: specs.SchedFIFO, Priority: 5, Flags: []specs.LinuxSchedulerFlag{specs.SchedFlagResetOnFork}},
		IOPriority: &specs.LinuxIOPriority{Class: specs.IOPRIO_CLASS_BE, Priority: 6},
	}, "/p")
	if p.Cwd != "/b" || p.UID != 1 || p.GID != 2 || !slices.Equal(p.Groups, []uint32{3}) || !p.HasUmask || p.Umask != 0o022 || !p.NoNewPrivileges {
		t.Errorf("%+v", p)
	}
	same(t, p.Rlimits, []Rlimit{{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, 1, 2, "/p/rlimits/0"}, {"RLIMIT_RTTIME", 15, 3, 4, "/p/rlimits/3"}})
	if len(problems) != 2 || problems[0].Pointer != "/p/rlimits/1/type" || problems[1].Pointer != "/p/rlimits/2/type" {
		t.Errorf("problems %v", problems)
	}
	same(t, *p.Scheduler, Scheduler{Policy: unix.SCHED_FIFO, Priority: 5, Flags: unix.SCHED_FLAG_RESET_ON_FORK})
	same(t, *p.IOPriority, 2<<13|6)
}

func TestRlimitNumbers(t *testing.T) {
	for name, want := range map[string]int{"RLIMIT_CPU": unix.RLIMIT_CPU, "RLIMIT_FSIZE": unix.RLIMIT_FSIZE, "RLIMIT_DATA": unix.RLIMIT_DATA,
		"RLIMIT_STACK": unix.RLIMIT_STACK, "RLIMIT_CORE": unix.RLIMIT_CORE, "RLIMIT_RSS": unix.RLIMIT_RSS, "RLIMIT_NPROC": unix.RLIMIT_NPROC,
		"RLIMIT_NOFILE": unix.RLIMIT_NOFILE, "RLIMIT_MEMLOCK": unix.RLIMIT_MEMLOCK, "RLIMIT_AS": unix.RLIMIT_AS, "RLIMIT_LOCKS": unix.RLIMIT_LOCKS,
		"RLIMIT_SIGPENDING": unix.RLIMIT_SIGPENDING, "RLIMIT_MSGQUEUE": unix.RLIMIT_MSGQUEUE, "RLIMIT_NICE": unix.RLIMIT_NICE,
		"RLIMIT_RTPRIO": unix.RLIMIT_RTPRIO, "RLIMIT_RTTIME": unix.RLIMIT_RTTIME} {
		if got, ok := rlimit(name); !ok || got != want {
			t.Errorf("%s: %d, %t, want %d", name, got, ok, want)
		}
	}
}

// A filter with a listener must let the calls through that hand the listener over.
func TestListenerIsHandedOver(t *testing.T) {
	notify := func(fallback specs.LinuxSeccompAction, action specs.LinuxSeccompAction, names ...string) *specs.LinuxSeccomp {
		return &specs.LinuxSeccomp{DefaultAction: fallback, ListenerPath: "/agent", Syscalls: []specs.LinuxSyscall{
			{Names: []string{"mkdir"}, Action: specs.ActNotify}, {Names: names, Action: action}}}
	}
	for _, test := range []struct {
		name    string
		profile *specs.LinuxSeccomp
		blamed  string
	}{
		{"all allowed", notify(specs.ActAllow, specs.ActErrno, "rmdir"), ""},
		{"those that it takes", notify(specs.ActErrno, specs.ActAllow, "sendmsg", "read", "execve"), ""},
		{"a notifying read", notify(specs.ActAllow, specs.ActNotify, "read"), ""},
		{"a notifying sendmsg", notify(specs.ActAllow, specs.ActNotify, "sendmsg"), "sendmsg"},
		{"a refused sendmsg", notify(specs.ActAllow, specs.ActErrno, "sendmsg"), "sendmsg"},
		{"nothing allowed but sendmsg", notify(specs.ActErrno, specs.ActAllow, "sendmsg"), "read"},
		{"no listener", &specs.LinuxSeccomp{DefaultAction: specs.ActErrno}, ""},
	} {
		_, complaint := compileFilter(test.profile)
		switch {
		case complaint == nil && test.blamed == "":
		case complaint == nil || complaint.Pointer != "/linux/seccomp/syscalls" || !strings.Contains(complaint.Message, test.blamed+" has to be allowed"):
			t.Errorf("%s: %v, want %q to blame", test.name, complaint, test.blamed)
		}
	}
}

// The conditions of the specification for giving a cgroup to the container's user.
func TestDelegation(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*specs.Spec, *host.Host)
		want   bool
	}{
		{"all that it takes", func(*specs.Spec, *host.Host) {}, true},
		{"no cgroup namespace", func(s *specs.Spec, _ *host.Host) { s.Linux.Namespaces = s.Linux.Namespaces[:1] }, false},
		{"a cgroup namespace of somebody else's", func(s *specs.Spec, _ *host.Host) { s.Linux.Namespaces[1].Path = "/proc/1/ns/cgroup" }, false},
		{"a read-only mount", func(s *specs.Spec, _ *host.Host) { s.Mounts[0].Options = []string{"ro"} }, false},
		{"no mount", func(s *specs.Spec, _ *host.Host) { s.Mounts = nil }, false},
		{"a mount elsewhere", func(s *specs.Spec, _ *host.Host) { s.Mounts[0].Destination = "/cgroup" }, false},
		{"controllers on version 1", func(_ *specs.Spec, h *host.Host) { h.Layout.Legacy = []string{"memory"} }, false},
		{"version 1 alone", func(_ *specs.Spec, h *host.Host) { h.Layout = ledger.Layout{Legacy: []string{"memory"}} }, false},
	} {
		s := &specs.Spec{
			Mounts: []specs.Mount{{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup"}},
			Linux:  &specs.Linux{Namespaces: []specs.LinuxNamespace{{Type: specs.MountNamespace}, {Type: specs.CgroupNamespace}}},
		}
		h := SomeHost()
		test.change(s, h)
		p, err := New(s, h, Options{ID: "demo", Bundle: "/bundle"})
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if p.Cgroup.Delegate != test.want {
			t.Errorf("%s: delegated %t", test.name, p.Cgroup.Delegate)
		}
	}
}

func TestMask(t *testing.T) {
	for _, test := range []struct {
		list string
		want []uint64
		ok   bool
	}{
		{"0", []uint64{1}, true},
		{"0-3,7", []uint64{0x8f}, true},
		{" 1 , 3", []uint64{0xa}, true},
		{"63,64", []uint64{1 << 63, 1}, true},
		{"128", []uint64{0, 0, 1}, true},
		{"0-7:2/4", []uint64{0x33}, true},
		{"", nil, false}, {"3-1", nil, false}, {"a", nil, false}, {"-1", nil, false}, {"70000", nil, false},
	} {
		got, ok := mask(test.list)
		if ok != test.ok || !slices.Equal(got, test.want) {
			t.Errorf("%q: %x, %t", test.list, got, ok)
		}
	}
}

func TestMemoryPolicy(t *testing.T) {
	got, problem := memoryPolicy(&specs.LinuxMemoryPolicy{Mode: specs.MpolBind, Nodes: "0,2", Flags: []specs.MemoryPolicyFlagType{specs.MpolFStaticNodes}})
	if problem != "" || got.Mode != unix.MPOL_BIND|unix.MPOL_F_STATIC_NODES || !slices.Equal(got.Nodes, []uint64{5}) {
		t.Errorf("%+v, %s", got, problem)
	}
	for _, bad := range []specs.LinuxMemoryPolicy{{Mode: "MPOL_WHAT"}, {Mode: specs.MpolBind, Flags: []specs.MemoryPolicyFlagType{"x"}}, {Mode: specs.MpolBind, Nodes: "x"}} {
		if _, problem := memoryPolicy(&bad); problem == "" {
			t.Errorf("%+v is taken", bad)
		}
	}
}
