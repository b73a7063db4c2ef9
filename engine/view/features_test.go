package view

import (
	"encoding/json"
	"reflect"
	"slices"
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

// What the document promises, the checks and the plan have to take; and what they take of the
// specification's words has to be promised, or clients that ask do without it.
func TestFeaturesAreTrue(t *testing.T) {
	f := Features(nil)
	for _, version := range []string{f.OCIVersionMin, f.OCIVersionMax} {
		s := featuresBase()
		s.Version = version
		if err := accepted(s); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	same := func(what string, promised, words []string, make func(s *specs.Spec, word string)) {
		t.Helper()
		for _, word := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(promised, words)))) {
			s := featuresBase()
			make(s, word)
			err := accepted(s)
			switch listed := slices.Contains(promised, word); {
			case listed && err != nil:
				t.Errorf("%s %s is promised: %v", what, word, err)
			case !listed && err == nil:
				t.Errorf("%s %s is not promised, and works", what, word)
			}
		}
	}
	l := f.Linux
	same("namespace", l.Namespaces, []string{"cgroup", "ipc", "mount", "network", "pid", "time", "user", "uts", "none"}, func(s *specs.Spec, kind string) {
		if kind == "user" {
			s.Linux.UIDMappings = []specs.LinuxIDMapping{{HostID: 1000, Size: 1}}
			s.Linux.GIDMappings = s.Linux.UIDMappings
		}
		if !slices.ContainsFunc(s.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return string(n.Type) == kind }) {
			s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.LinuxNamespaceType(kind)})
		}
	})
	for _, kind := range l.Namespaces {
		if plan.CloneFlag(specs.LinuxNamespaceType(kind)) == 0 {
			t.Errorf("namespace %s has no flag", kind)
		}
	}
	same("capability", l.Capabilities, nil, func(s *specs.Spec, name string) {
		s.Process.Capabilities = &specs.LinuxCapabilities{Bounding: []string{name}, Permitted: []string{name}}
	})
	modes := []string{"MPOL_DEFAULT", "MPOL_BIND", "MPOL_INTERLEAVE", "MPOL_WEIGHTED_INTERLEAVE", "MPOL_PREFERRED", "MPOL_PREFERRED_MANY", "MPOL_LOCAL", "MPOL_NONE"}
	same("memory policy", l.MemoryPolicy.Modes, modes, func(s *specs.Spec, mode string) {
		s.Linux.MemoryPolicy = &specs.LinuxMemoryPolicy{Mode: specs.MemoryPolicyModeType(mode)}
		if mode != "MPOL_DEFAULT" && mode != "MPOL_LOCAL" {
			s.Linux.MemoryPolicy.Nodes = "0"
		}
	})
	same("flag of memory policies", l.MemoryPolicy.Flags, []string{"MPOL_F_NUMA_BALANCING", "MPOL_F_RELATIVE_NODES", "MPOL_F_STATIC_NODES", "MPOL_F_NODE"}, func(s *specs.Spec, flag string) {
		s.Linux.MemoryPolicy = &specs.LinuxMemoryPolicy{Mode: specs.MpolBind, Nodes: "0", Flags: []specs.MemoryPolicyFlagType{specs.MemoryPolicyFlagType(flag)}}
	})
	filter := func(call specs.LinuxSyscall) *specs.LinuxSeccomp {
		call.Names = []string{"mount"}
		return &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, ListenerPath: "/run/agent", Syscalls: []specs.LinuxSyscall{call}}
	}
	actions := []string{"KILL", "KILL_PROCESS", "KILL_THREAD", "TRAP", "ERRNO", "TRACE", "ALLOW", "LOG", "NOTIFY", "NONE"}
	same("action", l.Seccomp.Actions, prefixed("SCMP_ACT_", actions), func(s *specs.Spec, action string) {
		s.Linux.Seccomp = filter(specs.LinuxSyscall{Action: specs.LinuxSeccompAction(action)})
	})
	arches := []string{"X86", "X86_64", "X32", "ARM", "AARCH64", "RISCV64", "NONE"}
	same("architecture", l.Seccomp.Archs, prefixed("SCMP_ARCH_", arches), func(s *specs.Spec, arch string) {
		s.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Architectures: []specs.Arch{specs.Arch(arch)}}
	})
	flags := []string{"TSYNC", "LOG", "SPEC_ALLOW", "WAIT_KILLABLE_RECV", "NONE"}
	same("flag of filters", l.Seccomp.KnownFlags, prefixed("SECCOMP_FILTER_FLAG_", flags), func(s *specs.Spec, flag string) {
		s.Linux.Seccomp = filter(specs.LinuxSyscall{Action: specs.ActNotify})
		s.Linux.Seccomp.Flags = []specs.LinuxSeccompFlag{specs.LinuxSeccompFlag(flag)}
	})
	operators := []string{"NE", "LT", "LE", "EQ", "GE", "GT", "MASKED_EQ", "NONE"}
	same("operator", l.Seccomp.Operators, prefixed("SCMP_CMP_", operators), func(s *specs.Spec, op string) {
		s.Linux.Seccomp = filter(specs.LinuxSyscall{Action: specs.ActErrno, Args: []specs.LinuxSeccompArg{{Value: 1, Op: specs.LinuxSeccompOperator(op)}}})
	})
}

// featuresBase is a config to which one thing is added.
func featuresBase() *specs.Spec {
	s := spec.Example(false)
	s.Linux.Namespaces = []specs.LinuxNamespace{{Type: specs.MountNamespace}, {Type: specs.UTSNamespace}, {Type: specs.IPCNamespace}, {Type: specs.NetworkNamespace}, {Type: specs.PIDNamespace}}
	return s
}

// accepted is why a config is not taken, or what of it is ignored.
func accepted(s *specs.Spec) error {
	parsed, warnings, err := spec.ParseChecked(spec.Format(s, ""))
	if err != nil {
		return err
	}
	if _, err := plan.New(parsed, &host.Host{Layout: ledger.Layout{Unified: []string{"cpu", "memory", "pids"}}}, plan.Options{ID: "demo", Bundle: "/bundle"}); err != nil {
		return err
	}
	for _, w := range warnings {
		if strings.Contains(w.Error(), "unknown") {
			return w
		}
	}
	return nil
}

func prefixed(prefix string, words []string) (all []string) {
	for _, word := range words {
		all = append(all, prefix+word)
	}
	return all
}
