package seccomp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/seccomp/internal/cbpf"
)

var explained = &specs.LinuxSeccomp{
	DefaultAction: specs.ActErrno,
	Architectures: []specs.Arch{specs.ArchX86, specs.ArchX32, specs.ArchARM},
	Syscalls: []specs.LinuxSyscall{
		{Names: []string{"read", "write", "open", "close", "stat", "tpyo"}, Action: specs.ActAllow},
		{Names: []string{"socket"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{
			{Index: 0, Value: 1, Op: specs.OpEqualTo}, {Index: 1, Value: 0xfffff, ValueTwo: 2, Op: specs.OpMaskedEqual}}},
		{Names: []string{"socket"}, Action: specs.ActKill, Args: []specs.LinuxSeccompArg{{Index: 2, Value: 9, Op: specs.OpGreaterThan}}},
		{Names: []string{"stat", "getpid"}, Action: specs.ActErrno},
		{Names: []string{"write"}, Action: specs.ActLog},
		{Names: []string{"bind", "shmat"}, Action: specs.ActAllow},
	},
}

func TestExplainText(t *testing.T) {
	e, err := Explain(specs.ArchX86_64, explained)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := e.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"default action: ERRNO EPERM; other architectures: KILL_PROCESS",
		"SCMP_ARCH_ARM is listed, but no program of it can run on such a machine",
		`/syscalls/0/names/5: no architecture has a system call "tpyo"`,
		"SCMP_ARCH_X86_64\n  0-4           ALLOW: 5 calls, read to stat\n",
		"  41            socket, by its arguments:\n                  /syscalls/1    ALLOW if arg0 == 1 and arg1 & 0xfffff == 2\n" +
			"                  /syscalls/2    KILL_THREAD if arg2 > 9\n                  else           ERRNO EPERM\n",
		"  50-1073741823 ERRNO ENOSYS: ",
		"SCMP_ARCH_X32\n  1073741824-1073741828 ALLOW",
	} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("%q is missing in:\n%s", line, b.String())
		}
	}
}

// TestExplanationIsTrue compares the ranges with the filter.
func TestExplanationIsTrue(t *testing.T) {
	for i := range archs {
		for _, p := range []*specs.LinuxSeccomp{Default(), explained, {DefaultAction: specs.ActAllow}} {
			p := *p
			p.Architectures = kin(archs[i].name)
			e, err := Explain(archs[i].name, &p)
			if err != nil {
				t.Fatal(err)
			}
			f, err := CompileFor(archs[i].name, &p)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range e.Archs {
				a := archByName(x.Arch)
				next := uint64(x.Ranges[0].First)
				for _, r := range x.Ranges {
					if uint64(r.First) != next {
						t.Fatalf("%s: %d follows %d", x.Arch, r.First, next-1)
					}
					next = uint64(r.Last) + 1
					for _, number := range []uint32{r.First, r.Last} {
						value, _ := cbpf.Run(f.Program, &cbpf.Data{Number: number, Arch: a.audit, Args: [6]uint64{1 << 20, 1 << 20, 0}}, archs[i].bigEndian)
						if got := describe(value); got != r.Result && len(r.Rules) == 0 {
							t.Errorf("%s %d: %s by the filter, %s by the explanation", x.Arch, number, got, r.Result)
						}
					}
				}
			}
		}
	}
}

func TestExplainSyscallText(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"write", "SCMP_ARCH_X86_64: number 1\n" +
			"  /syscalls/0    ALLOW\n" +
			"  /syscalls/4    LOG, without effect: /syscalls/0 has no conditions and so decides alone\n" +
			"  result         ALLOW (/syscalls/0)\n"},
		{"stat", "  /syscalls/3    ERRNO EPERM, without effect: it says what the default says\n  result         ALLOW (/syscalls/0)\n"},
		{"socket", "SCMP_ARCH_X86: number 359\n" +
			"  /syscalls/1    ALLOW if arg0 == 1 and arg1 & 0xfffff == 2\n" +
			"  /syscalls/2    KILL_THREAD if arg2 > 9\n" +
			"  else           ERRNO EPERM (the default action)\n" +
			"  by socketcall, number 102, with arg0 == 1: KILL_THREAD (the strictest of the default and the rules for socket, whose arguments can't be seen there)\n"},
		{"bind", "  by socketcall, number 102, with arg0 == 2: ALLOW (/syscalls/5)\n"},
		{"shmat", "  by ipc, number 117, with arg0 == 21: ALLOW (/syscalls/5)\n"},
		{"recv", "SCMP_ARCH_X86_64: has no such call\n\nSCMP_ARCH_X86\n  by socketcall, number 102, with arg0 == 10: ERRNO EPERM (the default action)\n"},
		{"kcmp", "SCMP_ARCH_X86_64: number 312\n  result         ERRNO ENOSYS (the call is newer than all that the profile names)\n"},
		{"lseek", "SCMP_ARCH_X86_64: number 8\n  result         ERRNO EPERM (the default action)\n"},
	} {
		e, err := ExplainSyscall(specs.ArchX86_64, explained, test.name)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := e.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), test.want) {
			t.Errorf("%q is missing in:\n%s", test.want, b.String())
		}
	}
	_, err := ExplainSyscall(specs.ArchX86_64, explained, "tpyo")
	var unknown *UnknownSyscallError
	if !errors.As(err, &unknown) {
		t.Errorf("%v is not an UnknownSyscallError", err)
	}
}

// TestExplainSyscallIsTrue compares the explanations of all calls with the filter.
func TestExplainSyscallIsTrue(t *testing.T) {
	for _, p := range []*specs.LinuxSeccomp{Default(), explained} {
		f, err := CompileFor(specs.ArchX86_64, p)
		if err != nil {
			t.Fatal(err)
		}
		args := [6]uint64{38, 1 << 32, 0, 0, 0, 0} // for which no rule of the two holds
		for _, native := range f.Archs {
			a := archByName(native)
			for name, number := range a.table.All {
				e, err := ExplainSyscall(specs.ArchX86_64, p, name)
				if err != nil {
					t.Fatal(err)
				}
				x := e.Archs[slices.IndexFunc(e.Archs, func(s SyscallOnArch) bool { return s.Arch == native })]
				run := func(number uint32, args [6]uint64) string {
					value, _ := cbpf.Run(f.Program, &cbpf.Data{Number: number, Arch: a.audit, Args: args}, false)
					return describe(value)
				}
				if got := run(number, args); x.Number != number || got != x.Result && name != "clone" {
					t.Errorf("%s on %s, %d: %s, explained as %d: %s", name, native, number, got, x.Number, x.Result)
				}
				if v := x.Via; v != nil {
					if got := run(v.Number, [6]uint64{uint64(v.Call)}); got != v.Result {
						t.Errorf("%s on %s by %s: %s, explained as %s", name, native, v.Name, got, v.Result)
					}
				}
			}
		}
	}
}

func TestExplainJSON(t *testing.T) {
	e, err := Explain(specs.ArchX86_64, explained)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := e.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Instructions  int
		Default       string
		UnknownNames  []UnknownName
		Architectures []struct {
			Arch   string
			Ranges []struct {
				First, Last uint32
				Names       []string
				Result      string
				Rules       []struct {
					Pointer, Result string
					Conditions      []string
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &doc); err != nil {
		t.Fatalf("%v in:\n%s", err, b.String())
	}
	if doc.Instructions != e.Instructions || doc.Default != "ERRNO EPERM" || len(doc.UnknownNames) != 1 || len(doc.Architectures) != 3 {
		t.Errorf("%+v", doc)
	}
	if r := doc.Architectures[0].Ranges[0]; r.Last != 4 || !slices.Equal(r.Names, []string{"read", "write", "open", "close", "stat"}) {
		t.Errorf("%+v", r)
	}

	s, err := ExplainSyscall(specs.ArchX86_64, explained, "socket")
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := s.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var one struct {
		Name          string
		Architectures []struct {
			Arch   string
			Number *uint32
			Rules  []struct{ Pointer, Result string }
			Via    *struct{ Name, Result string }
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &one); err != nil {
		t.Fatalf("%v in:\n%s", err, b.String())
	}
	if x := one.Architectures[1]; one.Name != "socket" || *x.Number != 359 || len(x.Rules) != 2 || x.Via.Result != "KILL_THREAD" {
		t.Errorf("%+v", x)
	}
}

func TestFilterText(t *testing.T) {
	f, err := CompileFor(specs.ArchX86_64, explained)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := f.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(b.String(), "\n"); len(lines) != len(f.Program)+1 || !strings.HasPrefix(lines[0], "   0: load arch") || !strings.HasPrefix(lines[1], "   1: if == 0xc000003e goto ") {
		t.Errorf("%s", b.String())
	}
	for _, part := range []string{"load arg0 high\n", "load arg0 low\n", "and 0xfffff\n", "return ERRNO ENOSYS\n", "return ALLOW\n", "load number\n"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%q is missing in:\n%s", part, b.String())
		}
	}
	b.Reset()
	if err := f.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Flags         uint32
		Notify        bool
		Architectures []specs.Arch
		Program       []struct {
			Code   uint16
			Jt, Jf uint8
			K      uint32
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &doc); err != nil {
		t.Fatal(err)
	}
	for i, ins := range doc.Program {
		if fmt.Sprint(ins) != fmt.Sprint(f.Program[i]) {
			t.Errorf("instruction %d: %v, want %v", i, ins, f.Program[i])
		}
	}
	if len(doc.Program) != len(f.Program) || doc.Flags != f.Flags || !slices.Equal(doc.Architectures, f.Archs) {
		t.Errorf("%+v", doc)
	}
}
