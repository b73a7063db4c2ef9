package seccomp

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// TestBadProfiles has each way in which a profile can be wrong.
func TestBadProfiles(t *testing.T) {
	call := func(s specs.LinuxSyscall) *specs.LinuxSeccomp {
		good := specs.LinuxSyscall{Names: []string{"read"}, Action: specs.ActAllow}
		return &specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{good, s}}
	}
	arg := func(a specs.LinuxSeccompArg) *specs.LinuxSeccomp {
		good := specs.LinuxSeccompArg{Index: 5, Op: specs.OpEqualTo}
		return call(specs.LinuxSyscall{Names: []string{"read"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{good, a}})
	}
	for _, test := range []struct {
		name    string
		profile *specs.LinuxSeccomp
		pointer string
		says    string
	}{
		{"no default action", &specs.LinuxSeccomp{}, "/defaultAction", "the action is missing; it is one of SCMP_ACT_ALLOW, SCMP_ACT_ERRNO"},
		{"unknown default action", &specs.LinuxSeccomp{DefaultAction: "SCMP_ACT_DENY"}, "/defaultAction", `unknown action "SCMP_ACT_DENY"`},
		{"default errno of another action", &specs.LinuxSeccomp{DefaultAction: specs.ActKill, DefaultErrnoRet: uintp(1)}, "/defaultErrnoRet", "SCMP_ACT_KILL has no errno"},
		{"default errno too great", &specs.LinuxSeccomp{DefaultAction: specs.ActErrno, DefaultErrnoRet: uintp(4096)}, "/defaultErrnoRet", "4096 is not an errno; the greatest that SCMP_ACT_ERRNO can give is 4095"},
		{"trace message too great", &specs.LinuxSeccomp{DefaultAction: specs.ActTrace, DefaultErrnoRet: uintp(65536)}, "/defaultErrnoRet", "65535"},
		{"unknown architecture", &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Architectures: []specs.Arch{specs.ArchX86, "SCMP_ARCH_AMD64"}}, "/architectures/1", `unknown architecture "SCMP_ARCH_AMD64"; it is one of SCMP_ARCH_AARCH64`},
		{"unknown flag", &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Flags: []specs.LinuxSeccompFlag{specs.LinuxSeccompFlagLog, "SECCOMP_FILTER_FLAG_NEW_LISTENER"}}, "/flags/1", `unknown flag "SECCOMP_FILTER_FLAG_NEW_LISTENER"`},
		{"metadata for nobody", &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, ListenerMetadata: "x"}, "/listenerMetadata", "must not be set without listenerPath"},
		{"no names", call(specs.LinuxSyscall{Action: specs.ActAllow}), "/syscalls/1/names", "must hold at least one name"},
		{"empty name", call(specs.LinuxSyscall{Names: []string{"read", ""}, Action: specs.ActAllow}), "/syscalls/1/names/1", "is empty"},
		{"no action", call(specs.LinuxSyscall{Names: []string{"read"}}), "/syscalls/1/action", "the action is missing"},
		{"unknown action", call(specs.LinuxSyscall{Names: []string{"read"}, Action: "ALLOW"}), "/syscalls/1/action", `unknown action "ALLOW"`},
		{"errno of ALLOW", call(specs.LinuxSyscall{Names: []string{"read"}, Action: specs.ActAllow, ErrnoRet: uintp(0)}), "/syscalls/1/errnoRet", "SCMP_ACT_ALLOW has no errno"},
		{"errno of NOTIFY", call(specs.LinuxSyscall{Names: []string{"read"}, Action: specs.ActNotify, ErrnoRet: uintp(1)}), "/syscalls/1/errnoRet", "SCMP_ACT_NOTIFY has no errno"},
		{"errno too great", call(specs.LinuxSyscall{Names: []string{"read"}, Action: specs.ActErrno, ErrnoRet: uintp(math.MaxUint)}), "/syscalls/1/errnoRet", "is not an errno"},
		{"argument 6", arg(specs.LinuxSeccompArg{Index: 6, Op: specs.OpEqualTo}), "/syscalls/1/args/1/index", "6 is not an argument; a system call has the arguments 0 to 5"},
		{"no operator", arg(specs.LinuxSeccompArg{Index: 1}), "/syscalls/1/args/1/op", "the operator is missing"},
		{"unknown operator", arg(specs.LinuxSeccompArg{Index: 1, Op: "=="}), "/syscalls/1/args/1/op", `unknown operator "=="; it is one of SCMP_CMP_EQ`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := CompileFor(specs.ArchX86_64, test.profile)
			var wrong *ProfileError
			if !errors.As(err, &wrong) {
				t.Fatalf("%v is not a ProfileError", err)
			}
			if wrong.Pointer != test.pointer || !strings.Contains(wrong.Problem, test.says) {
				t.Errorf("%v, want %s: … %s …", err, test.pointer, test.says)
			}
		})
	}
	_, err := CompileFor("SCMP_ARCH_ALPHA", &specs.LinuxSeccomp{DefaultAction: specs.ActAllow})
	var unsupported *UnsupportedArchError
	if !errors.As(err, &unsupported) || unsupported.Arch != "SCMP_ARCH_ALPHA" {
		t.Errorf("%v is not an UnsupportedArchError", err)
	}
}

func TestFlags(t *testing.T) {
	notify := []specs.LinuxSyscall{{Names: []string{"read"}, Action: specs.ActNotify}}
	for _, test := range []struct {
		name     string
		flags    []specs.LinuxSeccompFlag
		syscalls []specs.LinuxSyscall
		want     uint32
	}{
		{"none named", nil, nil, FlagSpecAllow},
		{"an empty list", []specs.LinuxSeccompFlag{}, nil, 0},
		{"two", []specs.LinuxSeccompFlag{flagTSync, specs.LinuxSeccompFlagLog}, nil, FlagTSync | FlagLog},
		{"twice", []specs.LinuxSeccompFlag{specs.LinuxSeccompFlagLog, specs.LinuxSeccompFlagLog}, nil, FlagLog},
		{"waiting for nobody", []specs.LinuxSeccompFlag{specs.LinuxSeccompFlagWaitKillableRecv}, nil, 0},
		{"waiting", []specs.LinuxSeccompFlag{specs.LinuxSeccompFlagWaitKillableRecv}, notify, FlagNewListener | FlagWaitKillableRecv},
		{"all threads and a listener", []specs.LinuxSeccompFlag{flagTSync}, notify, FlagNewListener | FlagTSync | FlagTSyncESRCH},
		{"a listener", nil, notify, FlagNewListener | FlagSpecAllow},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, err := Compile(&specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Flags: test.flags, Syscalls: test.syscalls})
			if err != nil {
				t.Fatal(err)
			}
			if f.Flags != test.want || f.Notify != (test.syscalls != nil) {
				t.Errorf("flags %#x, notify %v, want %#x", f.Flags, f.Notify, test.want)
			}
		})
	}
}
