package view

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/opencontainers/runtime-spec/specs-go/features"
)

// No field may be forgotten by the writer, neither one that we set nor one that a later version of
// the structure brings.
func TestFormatFeatures(t *testing.T) {
	full := &features.Features{}
	fill(reflect.ValueOf(full).Elem())
	for name, f := range map[string]*features.Features{"ours": Features(map[string]string{"a.b": "c"}), "all": full} {
		text := FormatFeatures(f, "")
		want, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(jsonOf(t, string(text)), jsonOf(t, string(want))) {
			t.Errorf("%s:\ngot  %s\nwant %s", name, text, want)
		}
	}
}

// fill sets every field of a structure to something.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.String:
		v.SetString("some")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"key": "value"}))
	}
}

// What the document promises, the checks and the plan have to take.
func TestFeaturesAreTrue(t *testing.T) {
	f := Features(nil)
	base := func() *specs.Spec {
		s := spec.Example(false)
		s.Linux.Namespaces = []specs.LinuxNamespace{{Type: specs.MountNamespace}, {Type: specs.UTSNamespace}, {Type: specs.IPCNamespace}, {Type: specs.NetworkNamespace}, {Type: specs.PIDNamespace}}
		return s
	}
	accept := func(what string, s *specs.Spec) {
		t.Helper()
		parsed, warnings, err := spec.ParseChecked(spec.Format(s, ""))
		if err == nil {
			_, err = plan.New(parsed, &host.Host{Layout: ledger.Layout{Unified: []string{"cpu", "memory", "pids"}}}, plan.Options{ID: "demo", Bundle: "/bundle"})
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		for _, w := range warnings {
			if strings.Contains(w.Error(), "unknown") {
				t.Errorf("%s: %v", what, w)
			}
		}
	}
	for _, version := range []string{f.OCIVersionMin, f.OCIVersionMax} {
		s := base()
		s.Version = version
		accept(version, s)
	}
	for _, kind := range f.Linux.Namespaces {
		s := base()
		if kind == string(specs.UserNamespace) {
			s.Linux.UIDMappings = []specs.LinuxIDMapping{{HostID: 1000, Size: 1}}
			s.Linux.GIDMappings = s.Linux.UIDMappings
		}
		if plan.CloneFlag(specs.LinuxNamespaceType(kind)) == 0 {
			t.Errorf("namespace %s has no flag", kind)
		}
		found := false
		for _, n := range s.Linux.Namespaces {
			found = found || string(n.Type) == kind
		}
		if !found {
			s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.LinuxNamespaceType(kind)})
		}
		accept("namespace "+kind, s)
	}
	s := base()
	s.Process.Capabilities = &specs.LinuxCapabilities{Bounding: f.Linux.Capabilities, Permitted: f.Linux.Capabilities}
	accept("capabilities", s)
	for _, mode := range f.Linux.MemoryPolicy.Modes {
		s := base()
		s.Linux.MemoryPolicy = &specs.LinuxMemoryPolicy{Mode: specs.MemoryPolicyModeType(mode)}
		switch specs.MemoryPolicyModeType(mode) {
		case specs.MpolDefault, specs.MpolLocal:
		default:
			s.Linux.MemoryPolicy.Nodes = "0"
		}
		accept("memory policy "+mode, s)
	}
	for _, action := range f.Linux.Seccomp.Actions {
		s := base()
		s.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, ListenerPath: "/run/agent",
			Syscalls: []specs.LinuxSyscall{{Names: []string{"mount"}, Action: specs.LinuxSeccompAction(action)}}}
		accept("action "+action, s)
	}
	for _, arch := range f.Linux.Seccomp.Archs {
		s := base()
		s.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Architectures: []specs.Arch{specs.Arch(arch)}}
		accept("architecture "+arch, s)
	}
	for _, flag := range f.Linux.Seccomp.KnownFlags {
		s := base()
		s.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, ListenerPath: "/run/agent",
			Syscalls: []specs.LinuxSyscall{{Names: []string{"mount"}, Action: specs.ActNotify}}, Flags: []specs.LinuxSeccompFlag{specs.LinuxSeccompFlag(flag)}}
		accept("flag "+flag, s)
	}
	for _, op := range f.Linux.Seccomp.Operators {
		s := base()
		s.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{{Names: []string{"mount"}, Action: specs.ActErrno,
			Args: []specs.LinuxSeccompArg{{Index: 0, Value: 1, Op: specs.LinuxSeccompOperator(op)}}}}}
		accept("operator "+op, s)
	}
}
