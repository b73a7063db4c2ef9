package seccomp

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/seccomp/internal/cbpf"
)

// answer compiles a profile for x86-64 and gives its result for a call there, or on the
// architecture of audit.
func answer(t *testing.T, p *specs.LinuxSeccomp, audit, number uint32, args ...uint64) string {
	t.Helper()
	f, err := CompileFor(specs.ArchX86_64, p)
	if err != nil {
		t.Fatal(err)
	}
	d := cbpf.Data{Arch: audit, Number: number}
	copy(d.Args[:], args)
	value, _ := cbpf.Run(f.Program, &d, false)
	return describe(value)
}

const amd64, i386 = 62 | audit64 | auditLE, 3 | auditLE

// TestRules has the rules of Compile's documentation, one by one.
func TestRules(t *testing.T) {
	const getpid, socket, socketcall = 39, 41, 102
	eq := func(index uint, value uint64) specs.LinuxSeccompArg {
		return specs.LinuxSeccompArg{Index: index, Value: value, Op: specs.OpEqualTo}
	}
	rule := func(action specs.LinuxSeccompAction, name string, args ...specs.LinuxSeccompArg) specs.LinuxSyscall {
		return specs.LinuxSyscall{Names: []string{name}, Action: action, Args: args}
	}
	profile := func(action specs.LinuxSeccompAction, rules ...specs.LinuxSyscall) *specs.LinuxSeccomp {
		return &specs.LinuxSeccomp{DefaultAction: action, Architectures: []specs.Arch{specs.ArchX86}, Syscalls: rules}
	}
	for _, test := range []struct {
		name    string
		profile *specs.LinuxSeccomp
		audit   uint32
		number  uint32
		args    []uint64
		want    string
	}{
		{"default", profile(specs.ActAllow), amd64, getpid, nil, "ALLOW"},
		{"native architecture though not listed", profile(specs.ActAllow, rule(specs.ActTrap, "getpid")), amd64, getpid, nil, "TRAP"},
		{"architecture not listed", profile(specs.ActAllow), 0xc00000b7, 1, nil, "KILL_PROCESS"},
		{"two conditions hold", profile(specs.ActAllow, rule(specs.ActTrap, "getpid", eq(0, 1), eq(1, 2))), amd64, getpid, []uint64{1, 2}, "TRAP"},
		{"one of two holds", profile(specs.ActAllow, rule(specs.ActTrap, "getpid", eq(0, 1), eq(1, 2))), amd64, getpid, []uint64{1, 3}, "ALLOW"},
		{"one argument twice: first", profile(specs.ActAllow, rule(specs.ActTrap, "getpid", eq(0, 1), eq(0, 2))), amd64, getpid, []uint64{1}, "TRAP"},
		{"one argument twice: second", profile(specs.ActAllow, rule(specs.ActTrap, "getpid", eq(0, 1), eq(0, 2))), amd64, getpid, []uint64{2}, "TRAP"},
		{"one argument twice: another", profile(specs.ActAllow, rule(specs.ActTrap, "getpid", eq(0, 1), eq(0, 2), eq(1, 5))), amd64, getpid, []uint64{9, 5}, "TRAP"},
		{"one argument twice: none", profile(specs.ActAllow, rule(specs.ActTrap, "getpid", eq(0, 1), eq(0, 2), eq(1, 5))), amd64, getpid, []uint64{9, 9}, "ALLOW"},
		{"the first that holds", profile(specs.ActAllow, rule(specs.ActTrap, "getpid", eq(0, 1)), rule(specs.ActLog, "getpid", eq(1, 1))), amd64, getpid, []uint64{1, 1}, "TRAP"},
		{"without conditions decides alone", profile(specs.ActAllow, rule(specs.ActTrap, "getpid", eq(0, 1)), rule(specs.ActLog, "getpid")), amd64, getpid, []uint64{1}, "LOG"},
		{"the first without conditions", profile(specs.ActAllow, rule(specs.ActTrap, "getpid"), rule(specs.ActLog, "getpid")), amd64, getpid, nil, "TRAP"},
		{"the default's action is not a rule", profile(specs.ActErrno, rule(specs.ActErrno, "getpid"), rule(specs.ActAllow, "getpid")), amd64, getpid, nil, "ALLOW"},
		{"newer than the profile", profile(specs.ActErrno, rule(specs.ActAllow, "getpid")), amd64, getpid + 1, nil, "ERRNO ENOSYS"},
		{"older than the profile", profile(specs.ActErrno, rule(specs.ActAllow, "getpid")), amd64, getpid - 1, nil, "ERRNO EPERM"},
		{"newer, that kills by default", profile(specs.ActKillProcess, rule(specs.ActAllow, "getpid")), amd64, getpid + 1, nil, "ERRNO ENOSYS"},
		{"newer, that allows by default", profile(specs.ActAllow, rule(specs.ActTrap, "getpid")), amd64, getpid + 1, nil, "ALLOW"},
		{"newer, that logs by default", profile(specs.ActLog, rule(specs.ActTrap, "getpid")), amd64, getpid + 1, nil, "LOG"},
		{"newer, that notifies by default", profile(specs.ActNotify, rule(specs.ActTrap, "getpid")), amd64, getpid + 1, nil, "NOTIFY"},
		{"no names, no age", profile(specs.ActErrno), amd64, 5000, nil, "ERRNO EPERM"},
		{"x32 not listed", profile(specs.ActErrno, rule(specs.ActAllow, "getpid")), amd64, x32Bit | getpid, nil, "ERRNO ENOSYS"},
		{"x32 not listed, by a permissive default", profile(specs.ActAllow), amd64, x32Bit | getpid, nil, "KILL_PROCESS"},
		{"a tracer's -1", profile(specs.ActAllow), amd64, 0xffffffff, nil, "ALLOW"},
		{"multiplexed", profile(specs.ActErrno, rule(specs.ActAllow, "socket")), i386, socketcall, []uint64{1}, "ALLOW"},
		{"multiplexed, another", profile(specs.ActErrno, rule(specs.ActAllow, "socket")), i386, socketcall, []uint64{2}, "ERRNO EPERM"},
		{"multiplexed, allowed on conditions", profile(specs.ActErrno, rule(specs.ActAllow, "socket", eq(0, 2))), i386, socketcall, []uint64{1}, "ERRNO EPERM"},
		{"multiplexed, denied on conditions", profile(specs.ActAllow, rule(specs.ActErrno, "socket", eq(0, 2))), i386, socketcall, []uint64{1}, "ERRNO EPERM"},
		{"multiplexer by its own name", profile(specs.ActErrno, rule(specs.ActAllow, "socket", eq(0, 2)), rule(specs.ActAllow, "socketcall")), i386, socketcall, []uint64{1}, "ALLOW"},
		{"no multiplexer on x86-64", profile(specs.ActErrno, rule(specs.ActAllow, "socket")), amd64, socketcall, []uint64{1}, "ERRNO ENOSYS"},
		{"64 bits count", profile(specs.ActAllow, rule(specs.ActTrap, "getpid", eq(0, 1<<32))), amd64, getpid, []uint64{0}, "ALLOW"},
		{"32 bits count", profile(specs.ActAllow, rule(specs.ActTrap, "getpid", eq(0, 1<<32|7))), i386, 20, []uint64{7}, "TRAP"},
		{"the legacy name of one architecture", profile(specs.ActAllow, rule(specs.ActTrap, "waitpid")), i386, 7, nil, "TRAP"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := answer(t, test.profile, test.audit, test.number, test.args...); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestUnknownNames(t *testing.T) {
	f, err := CompileFor(specs.ArchX86_64, &specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
		{Names: []string{"read", "set_tls", "call_of_2030"}, Action: specs.ActAllow},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []UnknownName{{"/syscalls/0/names/2", "call_of_2030"}}; !slices.Equal(f.Unknown, want) {
		t.Errorf("%v, want %v: set_tls is a call of ARM", f.Unknown, want)
	}
}

// TestIgnoredArchs: a filter never meets the calls of another family's architectures, so they take
// no room in it.
func TestIgnoredArchs(t *testing.T) {
	p := Default()
	p.Architectures = []specs.Arch{specs.ArchX86_64}
	alone, err := CompileFor(specs.ArchX86_64, p)
	if err != nil {
		t.Fatal(err)
	}
	for i := range archs {
		if archs[i].family != familyX86 {
			p.Architectures = append(p.Architectures, archs[i].name)
		}
	}
	f, err := CompileFor(specs.ArchX86_64, p)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.Program, alone.Program) {
		t.Errorf("%d instructions, %d without the others", len(f.Program), len(alone.Program))
	}
}

// TestDefaultIsShort holds the size and the speed of filters of the usual kind.
func TestDefaultIsShort(t *testing.T) {
	p := Default()
	p.Architectures = kin(specs.ArchX86_64)
	f, err := CompileFor(specs.ArchX86_64, p)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Program) > 400 {
		t.Errorf("%d instructions", len(f.Program))
	}
	for _, name := range []string{"read", "write", "futex", "epoll_wait", "clock_gettime", "openat", "mmap", "recvmsg"} {
		number, _ := SyscallNumber(specs.ArchX86_64, name)
		value, steps := cbpf.Run(f.Program, &cbpf.Data{Arch: amd64, Number: number}, false)
		if value != retAllow || steps > 12 {
			t.Errorf("%s: %s after %d instructions", name, describe(value), steps)
		}
	}
}

// TestAllowIsConstant goes the way of the kernel's seccomp_is_const_allow(): calls that are allowed
// without conditions are to be found so by it.
func TestAllowIsConstant(t *testing.T) {
	constant := func(program []Instruction, arch, number uint32) bool {
		var a uint32
		for pc := 0; ; pc++ {
			ins := program[pc]
			taken := false
			switch {
			case ins.Code == cbpf.LoadWord && ins.K == cbpf.OffsetNumber:
				a = number
				continue
			case ins.Code == cbpf.LoadWord && ins.K == cbpf.OffsetArch:
				a = arch
				continue
			case ins.Code == cbpf.Return:
				return ins.K == retAllow
			case ins.Code == cbpf.Jump:
				pc += int(ins.K)
				continue
			case ins.Code == cbpf.And:
				a &= ins.K
				continue
			case ins.Code == cbpf.JumpEqual:
				taken = a == ins.K
			case ins.Code == cbpf.JumpGreater:
				taken = a > ins.K
			case ins.Code == cbpf.JumpGreaterEq:
				taken = a >= ins.K
			case ins.Code == cbpf.JumpSet:
				taken = a&ins.K != 0
			default:
				return false
			}
			if taken {
				pc += int(ins.Jt)
			} else {
				pc += int(ins.Jf)
			}
		}
	}
	p := Default()
	p.Architectures = kin(specs.ArchX86_64)
	f, err := CompileFor(specs.ArchX86_64, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Syscalls {
		for _, name := range s.Names {
			for _, native := range f.Archs {
				a := archByName(native)
				if number, ok := a.table.NumberOf(name); ok && constant(f.Program, a.audit, number) != (len(s.Args) == 0 && s.Action == specs.ActAllow) {
					t.Errorf("%s on %s", name, native)
				}
			}
		}
	}
}

// TestDecide has the filter's own answers.
func TestDecide(t *testing.T) {
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
		{Names: []string{"write"}, Action: specs.ActNotify, Args: []specs.LinuxSeccompArg{{Index: 0, Value: 2, Op: specs.OpEqualTo}}},
		{Names: []string{"execve"}, Action: specs.ActAllow},
		{Names: []string{"uname"}, Action: specs.ActTrace, ErrnoRet: uintp(4242)},
		{Names: []string{"kill"}, Action: specs.ActKill},
	}}
	f, err := CompileFor(specs.ArchX86_64, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		args   []uint64
		action specs.LinuxSeccompAction
		data   uint16
	}{
		{"write", []uint64{2, 7}, specs.ActNotify, 0},
		{"write", nil, specs.ActErrno, 1},
		{"execve", nil, specs.ActAllow, 0},
		{"uname", nil, specs.ActTrace, 4242},
		{"kill", nil, specs.ActKillThread, 0},
		{"read", nil, specs.ActErrno, 1},
	} {
		action, data, ok := f.Decide(test.name, test.args...)
		if action != test.action || data != test.data || !ok {
			t.Errorf("%s %v: %s %d %v, want %s %d", test.name, test.args, action, data, ok, test.action, test.data)
		}
	}
	if _, _, ok := f.Decide("waitpid"); ok {
		t.Error("x86-64 has no waitpid")
	}
}

func TestBytes(t *testing.T) {
	for _, test := range []struct {
		arch  specs.Arch
		order binary.ByteOrder
	}{{specs.ArchX86_64, binary.LittleEndian}, {specs.ArchS390X, binary.BigEndian}} {
		f, err := CompileFor(test.arch, &specs.LinuxSeccomp{DefaultAction: specs.ActErrno})
		if err != nil {
			t.Fatal(err)
		}
		b := f.Bytes()
		if len(b) != 8*len(f.Program) {
			t.Fatalf("%d bytes for %d instructions", len(b), len(f.Program))
		}
		for i, ins := range f.Program {
			b := b[8*i:]
			if test.order.Uint16(b) != ins.Code || b[2] != ins.Jt || b[3] != ins.Jf || test.order.Uint32(b[4:]) != ins.K {
				t.Errorf("%s instruction %d: % x is not %+v", test.arch, i, b[:8], ins)
			}
		}
	}
}

// TestLongProfiles goes to the limit of what the kernel takes, and over it.
func TestLongProfiles(t *testing.T) {
	ioctls := func(n int) *specs.LinuxSeccomp {
		p := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno}
		for i := range n {
			p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: []string{"ioctl"}, Action: specs.ActAllow,
				Args: []specs.LinuxSeccompArg{{Index: 1, Value: 0x5400 + 3*uint64(i), Op: specs.OpEqualTo}}})
		}
		return p
	}
	r := rand.New(rand.NewPCG(1, 2))
	if f := agree(t, specs.ArchX86_64, ioctls(3000), r, 2000); f == nil || len(f.Program) > 3100 {
		t.Error("3000 values of one argument are to take about 3000 instructions")
	}
	_, err := CompileFor(specs.ArchX86_64, ioctls(5000))
	var tooLarge *TooLargeError
	if !errors.As(err, &tooLarge) || tooLarge.Limit != 4096 {
		t.Errorf("%v is not a TooLargeError", err)
	}

	if _, err := CompileFor(specs.ArchX86_64, ioctls(200000)); !errors.As(err, &tooLarge) {
		t.Errorf("%v is not a TooLargeError", err)
	}

	// Rules that reach one another with ever different knowledge, so that the compiler has to do
	// without.
	nasty := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno}
	for i := range uint64(140) {
		nasty.Syscalls = append(nasty.Syscalls, specs.LinuxSyscall{Names: []string{"ioctl"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{
			{Index: uint(i % 6), Value: i << 32, Op: specs.OpGreaterThan},
			{Index: uint(i+1) % 6, Value: (i*7919 + 1) << 31, Op: specs.OpLessThan},
			{Index: uint(i+2) % 6, Value: i<<40 | i, Op: specs.OpNotEqual},
			{Index: uint(i+3) % 6, Value: i<<35 | i, Op: specs.OpLessEqual},
		}})
	}
	if agree(t, specs.ArchX86_64, nasty, r, 2000) == nil {
		t.Error("too long, though compiled rule by rule it fits")
	}
	p, tables, _, err := analyse(specs.ArchX86_64, nasty)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("with knowledge %d instructions (0: too many), without %d", len(p.program(tables, newGraph())), len(p.program(tables, &graph{index: map[node]nodeID{}, forget: true})))
}

func BenchmarkCompileDefault(b *testing.B) {
	p := Default()
	p.Architectures = kin(specs.ArchX86_64)
	b.ReportAllocs()
	for b.Loop() {
		f, err := CompileFor(specs.ArchX86_64, p)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(f.Program)), "instructions")
	}
}

func BenchmarkCompileIoctls(b *testing.B) {
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno}
	for i := range uint64(200) {
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: []string{"ioctl"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 1, Value: 0x5400 + i, Op: specs.OpEqualTo}}})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := CompileFor(specs.ArchX86_64, p); err != nil {
			b.Fatal(err)
		}
	}
}
