package container

import (
	"testing"

	"github.com/berth-runtime/berth/engine/plan"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

func TestRefusesToMount(t *testing.T) {
	rule := func(action specs.LinuxSeccompAction, args []specs.LinuxSeccompArg, names ...string) specs.LinuxSyscall {
		return specs.LinuxSyscall{Names: names, Action: action, Args: args}
	}
	some := []specs.LinuxSeccompArg{{Index: 3, Op: specs.OpEqualTo}}
	for name, test := range map[string]struct {
		s    *specs.LinuxSeccomp
		want bool
	}{
		"no filter":              {nil, false},
		"all allowed":            {&specs.LinuxSeccomp{DefaultAction: specs.ActAllow}, false},
		"all refused":            {&specs.LinuxSeccomp{DefaultAction: specs.ActErrno}, true},
		"both refused":           {&specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{rule(specs.ActErrno, nil, "mount", "fsmount")}}, true},
		"one refused":            {&specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{rule(specs.ActKillProcess, nil, "mount")}}, false},
		"some refused":           {&specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{rule(specs.ActErrno, some, "mount", "fsmount")}}, false},
		"some allowed":           {&specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{rule(specs.ActAllow, some, "fsmount")}}, false},
		"another process judges": {&specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{rule(specs.ActNotify, nil, "mount")}}, false},
		"only logged":            {&specs.LinuxSeccomp{DefaultAction: specs.ActLog}, false},
	} {
		if got := refusesToMount(test.s); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestMayOwn(t *testing.T) {
	ids := plan.IDMaps{UID: []specs.LinuxIDMapping{{ContainerID: 0, HostID: 1000, Size: 1}, {ContainerID: 1, HostID: 100_000, Size: 10}}}
	own := []plan.Namespace{{Type: specs.UserNamespace}}
	joined := []plan.Namespace{{Type: specs.UserNamespace, Path: "/proc/1/ns/user"}}
	for _, test := range []struct {
		p    plan.Plan
		uid  uint32
		want bool
	}{
		{plan.Plan{}, 0, true},
		{plan.Plan{Namespaces: joined}, 0, true}, // its ids are not known
		{plan.Plan{Namespaces: own, IDs: ids}, 0, false},
		{plan.Plan{Namespaces: own, IDs: ids}, 1000, true},
		{plan.Plan{Namespaces: own, IDs: ids}, 1001, false},
		{plan.Plan{Namespaces: own, IDs: ids}, 100_009, true},
		{plan.Plan{Namespaces: own, IDs: ids}, 100_010, false},
	} {
		if got := mayOwn(&test.p, test.uid); got != test.want {
			t.Errorf("%+v, %d: %v", test.p.Namespaces, test.uid, got)
		}
	}
}
