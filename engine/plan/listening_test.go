package plan

import (
	"slices"
	"testing"

	"github.com/berth-runtime/berth/internal/ptr"
	"github.com/berth-runtime/berth/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// What a profile allows or refuses by an errno is asked about; what it kills for, and what no
// program can wait in, is not.
func TestLearning(t *testing.T) {
	rule := func(action specs.LinuxSeccompAction, names ...string) specs.LinuxSyscall {
		return specs.LinuxSyscall{Names: names, Action: action}
	}
	enosys := rule(specs.ActErrno, "clone3")
	enosys.ErrnoRet = ptr.To(uint(unix.ENOSYS))
	conditional := rule(specs.ActAllow, "personality")
	conditional.Args = []specs.LinuxSeccompArg{{Value: 8, Op: specs.OpEqualTo}}
	for _, test := range []struct {
		name    string
		profile *specs.LinuxSeccomp
		want    map[string]specs.LinuxSeccompAction
	}{
		{"allowing some", &specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
			rule(specs.ActAllow, "read", "exit_group", "rt_sigreturn"), rule(specs.ActKillProcess, "mount"), enosys, conditional,
		}}, map[string]specs.LinuxSeccompAction{
			"read": specs.ActNotify, "write": specs.ActNotify, "personality": specs.ActNotify,
			"exit_group": specs.ActAllow, "rt_sigreturn": specs.ActAllow, "mount": specs.ActKillProcess, "clone3": specs.ActErrno,
		}},
		{"refusing some", &specs.LinuxSeccomp{DefaultAction: specs.ActLog, Syscalls: []specs.LinuxSyscall{
			rule(specs.ActErrno, "mount"), rule(specs.ActTrap, "exit"), enosys,
		}}, map[string]specs.LinuxSeccompAction{
			"read": specs.ActNotify, "mount": specs.ActNotify, "clone3": specs.ActErrno,
			"exit_group": specs.ActAllow, "restart_syscall": specs.ActAllow, "exit": specs.ActTrap,
		}},
	} {
		f, err := Learning(test.profile, true)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if f.Flags&seccomp.FlagNewListener == 0 || f.Flags&seccomp.FlagWaitKillableRecv == 0 || !f.Notify {
			t.Errorf("%s: flags %#x", test.name, f.Flags)
		}
		for name, want := range test.want {
			if got, _, ok := f.Decide(name); !ok || got != want {
				t.Errorf("%s: %s gets %s, want %s", test.name, name, got, want)
			}
		}
	}
	if _, err := Learning(&specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{rule(specs.ActNotify, "mount")}}, false); err == nil {
		t.Error("a profile with a listener of its own is taken")
	}
}

// The pass opens two calls to who knows it, and nothing else.
func TestWithPass(t *testing.T) {
	f, err := seccomp.Compile(&specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
		{Names: []string{"write"}, Action: specs.ActAllow},
	}})
	if err != nil {
		t.Fatal(err)
	}
	const pass = 0x0123456789abcdef
	own := slices.Clone(f.Program)
	opened := *f
	if opened.Program, err = WithPass(f.Program, pass); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.Program, own) {
		t.Error("the filter itself was changed")
	}
	for _, test := range []struct {
		name  string
		sixth uint64
		want  specs.LinuxSeccompAction
	}{
		{"sendmsg", pass, specs.ActAllow}, {"read", pass, specs.ActAllow}, {"recvmsg", pass, specs.ActErrno}, {"execve", pass, specs.ActErrno},
		{"sendmsg", 0, specs.ActErrno}, {"sendmsg", pass & (1<<32 - 1), specs.ActErrno}, {"read", pass &^ (1<<32 - 1), specs.ActErrno}, {"read", pass + 1, specs.ActErrno},
		{"write", 0, specs.ActAllow}, {"write", pass, specs.ActAllow},
	} {
		if got, _, _ := opened.Decide(test.name, 0, 0, 0, 0, 0, test.sixth); got != test.want {
			t.Errorf("%s with %#x gets %s, want %s", test.name, test.sixth, got, test.want)
		}
	}
	if _, err := WithPass(make([]seccomp.Instruction, unix.BPF_MAXINSNS), pass); err == nil {
		t.Error("a program that is too long is taken")
	}
}
