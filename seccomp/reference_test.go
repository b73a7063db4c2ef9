package seccomp

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/seccomp/internal/cbpf"
)

// meaning answers a call as the documentation of Compile says, straight from the profile, with none
// of the compiler's tables, trees and shortcuts.
func meaning(native specs.Arch, p *specs.LinuxSeccomp, d *cbpf.Data) uint32 {
	result := func(action specs.LinuxSeccompAction, errno *uint) uint32 {
		value, _ := actionValue(action)
		if value == retErrno || value == retTrace {
			if errno == nil {
				return value | 1
			}
			value |= uint32(*errno)
		}
		return value
	}
	fallback := result(p.DefaultAction, p.DefaultErrnoRet)
	list := listedArchs(native, p)
	enosys := uint32(retErrno | 38)
	switch native {
	case specs.ArchMIPS, specs.ArchMIPS64, specs.ArchMIPS64N32, specs.ArchMIPSEL, specs.ArchMIPSEL64, specs.ArchMIPSEL64N32:
		enosys = retErrno | 89
	case specs.ArchPARISC, specs.ArchPARISC64:
		enosys = retErrno | 251
	}
	denying := slices.Contains([]uint32{retKillProcess, retKillThread, retTrap, retErrno}, fallback&0xffff0000)

	const amd64 = 0xc000003e
	isX32 := d.Arch == amd64 && d.Number >= 0x40000000
	var a *arch
	for _, one := range list {
		if one.audit == d.Arch && (one.name == specs.ArchX32) == isX32 {
			a = one
		}
	}
	if a == nil && isX32 {
		// x32 without rules of its own, on a machine with rules for x86-64
		if i := slices.IndexFunc(list, func(one *arch) bool { return one.name == specs.ArchX86_64 }); i >= 0 {
			if _, known := newestNamed(list[i], p); denying && known {
				return enosys
			}
			if d.Number == 0xffffffff {
				return fallback
			}
		}
	}
	if a == nil {
		return retKillProcess
	}

	holds := func(arg specs.LinuxSeccompArg) bool {
		x, v, two := d.Args[arg.Index], arg.Value, arg.ValueTwo
		if !a.wide {
			x &= 0xffffffff
		}
		if !a.wide && !ordered(arg.Op) {
			v, two = v&0xffffffff, two&0xffffffff
		}
		switch arg.Op {
		case specs.OpNotEqual:
			return x != v
		case specs.OpLessThan:
			return x < v
		case specs.OpLessEqual:
			return x <= v
		case specs.OpEqualTo:
			return x == v
		case specs.OpGreaterEqual:
			return x >= v
		case specs.OpGreaterThan:
			return x > v
		}
		return x&v == two&v
	}
	// vacuous conditions are none
	says := func(arg specs.LinuxSeccompArg) bool {
		return !(arg.Op == specs.OpMaskedEqual && (arg.Value == 0 || !a.wide && uint32(arg.Value) == 0))
	}
	either := func(s *specs.LinuxSyscall) bool {
		seen := map[uint]bool{}
		for _, arg := range s.Args {
			if seen[arg.Index] {
				return true
			}
			seen[arg.Index] = true
		}
		return false
	}
	unconditional := func(s *specs.LinuxSyscall) bool {
		if either(s) {
			return slices.ContainsFunc(s.Args, func(arg specs.LinuxSeccompArg) bool { return !says(arg) })
		}
		return !slices.ContainsFunc(s.Args, says)
	}
	matches := func(s *specs.LinuxSyscall) bool {
		if either(s) {
			return slices.ContainsFunc(s.Args, holds)
		}
		return !slices.ContainsFunc(s.Args, func(arg specs.LinuxSeccompArg) bool { return !holds(arg) })
	}
	effective := func(name string) []*specs.LinuxSyscall {
		var list []*specs.LinuxSyscall
		for i := range p.Syscalls {
			s := &p.Syscalls[i]
			if result(s.Action, s.ErrnoRet) == fallback {
				continue
			}
			for _, n := range s.Names {
				if n == name {
					list = append(list, s)
				}
			}
		}
		return list
	}

	// what a multiplexer answers for one of its calls
	strictest := func(name string) uint32 {
		value := fallback
		for _, e := range effective(name) {
			if unconditional(e) {
				return result(e.Action, e.ErrnoRet)
			}
			if v := result(e.Action, e.ErrnoRet); int32(v&0xffff0000) < int32(value&0xffff0000) {
				value = v
			}
		}
		return value
	}
	_, multiplexes := a.table.NumberOf("socketcall")
	behind := func(name, n string) (subCall, bool) {
		sub, ok := subCallOf(n)
		return sub, ok && multiplexes && (sub.viaIPC && name == "ipc" || !sub.viaIPC && name == "socketcall")
	}

	name, _ := a.table.NameOf(d.Number)
	named := slices.ContainsFunc(p.Syscalls, func(s specs.LinuxSyscall) bool {
		return slices.ContainsFunc(s.Names, func(n string) bool {
			_, ok := behind(name, n)
			return n == name || ok && strictest(n) != fallback
		})
	})
	if !named {
		newest, known := newestNamed(a, p)
		private := a.name == specs.ArchARM && d.Number >= 0xf0000 && d.Number <= 0xf0006 ||
			a.name == specs.ArchX32 && d.Number >= x32Bit+512 && d.Number < x32Bit+548
		if denying && fallback != enosys && known && d.Number > newest && !private {
			return enosys
		}
		return fallback
	}
	for _, s := range effective(name) {
		if unconditional(s) {
			return result(s.Action, s.ErrnoRet)
		}
	}
	for i := range p.Syscalls {
		s := &p.Syscalls[i]
		value := result(s.Action, s.ErrnoRet)
		if value == fallback {
			continue
		}
		for _, n := range s.Names {
			if n == name && matches(s) {
				return value
			}
			sub, ok := behind(name, n)
			if !ok || sub.viaIPC && d.Args[0]&0xffff != uint64(sub.number) || !sub.viaIPC && a.wide && d.Args[0] != uint64(sub.number) ||
				!sub.viaIPC && !a.wide && uint32(d.Args[0]) != uint32(sub.number) {
				continue
			}
			if value := strictest(n); value != fallback {
				return value
			}
		}
	}
	return fallback
}

// newestNamed is the greatest number that the profile names, and that tells its age.
func newestNamed(a *arch, p *specs.LinuxSeccomp) (newest uint32, known bool) {
	for _, s := range p.Syscalls {
		for _, name := range s.Names {
			nr, ok := a.table.NumberOf(name)
			switch {
			case !ok, a.name == specs.ArchARM && nr >= 0xf0000, a.name == specs.ArchX32 && nr >= x32Bit+512 && nr < x32Bit+548:
			default:
				newest, known = max(newest, nr), true
			}
		}
	}
	return newest, known
}

// agree compiles a profile and compares the filter with the reference, on calls that have something
// to do with it.
func agree(t *testing.T, native specs.Arch, p *specs.LinuxSeccomp, r *rand.Rand, calls int) *Filter {
	t.Helper()
	f, err := CompileFor(native, p)
	if err != nil {
		var tooLarge *TooLargeError
		if errors.As(err, &tooLarge) {
			return nil
		}
		t.Fatalf("%v\n%s", err, asJSON(p))
	}
	if err := cbpf.Check(f.Program); err != nil {
		t.Fatalf("%v\n%s", err, asJSON(p))
	}
	list := listedArchs(native, p)
	values := interesting(p)
	var numbers []uint32
	for _, a := range list {
		for _, s := range p.Syscalls {
			for _, name := range s.Names {
				if nr, ok := a.table.NumberOf(name); ok {
					numbers = append(numbers, nr, nr-1, nr+1)
				}
			}
		}
		for _, name := range []string{"socketcall", "ipc", "read", "execve"} {
			if nr, ok := a.table.NumberOf(name); ok {
				numbers = append(numbers, nr)
			}
		}
	}
	numbers = append(numbers, 0, 470, 512, x32Bit, x32Bit+470, x32Bit+520, 0xf0001, 0xf0007, 0xffffffff, r.Uint32())
	for range calls {
		d := cbpf.Data{Number: pick(r, numbers), Arch: pick(r, list).audit}
		if r.IntN(50) == 0 {
			d.Arch = r.Uint32()
		}
		for i := range d.Args {
			d.Args[i] = pick(r, values) + uint64(r.IntN(3)) - 1
			if r.IntN(4) == 0 {
				d.Args[i] = r.Uint64N(32)
			}
			if r.IntN(8) == 0 {
				d.Args[i] ^= 1 << r.IntN(64)
			}
		}
		got, _ := cbpf.Run(f.Program, &d, list[0].bigEndian)
		if want := meaning(native, p, &d); got != want {
			t.Fatalf("%s: arch %#x number %d (%#x) args %#x: %s, want %s\n%s", native, d.Arch, d.Number, d.Number, d.Args, describe(got), describe(want), asJSON(p))
		}
	}
	return f
}

// TestReference has random profiles of all kinds on all architectures.
func TestReference(t *testing.T) {
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	for i := range rounds {
		r := rand.New(rand.NewPCG(3, uint64(i)))
		native := pick(r, archs[:]).name
		p := randomProfile(r, false)
		switch r.IntN(3) {
		case 0:
			p.Architectures = kin(native)
		case 1:
			for range r.IntN(4) {
				p.Architectures = append(p.Architectures, pick(r, archs[:]).name)
			}
		}
		agree(t, native, p, r, 200)
	}
}

// TestReferenceDefault has our own profile on all architectures.
func TestReferenceDefault(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for i := range archs {
		p := Default("CAP_SYS_CHROOT")
		p.Architectures = kin(archs[i].name)
		agree(t, archs[i].name, p, r, 3000)
	}
}

// FuzzCompile reads a profile in JSON: whatever stands there, it is refused with a pointer into it,
// or becomes a filter that the kernel takes and that does what the profile says.
func FuzzCompile(f *testing.F) {
	for i := range uint64(20) {
		f.Add([]byte(asJSON(randomProfile(rand.New(rand.NewPCG(11, i)), false))), uint8(i), i)
	}
	f.Add([]byte(asJSON(Default())), uint8(1), uint64(1))
	files, err := filepath.Glob("testdata/profiles/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint8(i), uint64(i))
	}
	f.Add([]byte(`{"defaultAction":"SCMP_ACT_NOTIFY","flags":["SECCOMP_FILTER_FLAG_TSYNC"],"syscalls":[{"names":["read"],"action":"SCMP_ACT_KILL","args":[{"index":6,"op":"x"}]}]}`), uint8(0), uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, arch uint8, seed uint64) {
		var p specs.LinuxSeccomp
		if json.Unmarshal(data, &p) != nil {
			return
		}
		native := archs[int(arch)%len(archs)].name
		if _, err := CompileFor(native, &p); err != nil {
			var wrong *ProfileError
			var tooLarge *TooLargeError
			if !errors.As(err, &wrong) && !errors.As(err, &tooLarge) {
				t.Fatalf("an error of another kind: %v", err)
			}
			if wrong != nil && (wrong.Pointer == "" || wrong.Pointer[0] != '/') {
				t.Fatalf("no pointer: %v", err)
			}
			return
		}
		agree(t, native, &p, rand.New(rand.NewPCG(seed, seed)), 200)
	})
}

// FuzzRules makes profiles of bytes, so that nearly all of them are right.
func FuzzRules(f *testing.F) {
	for i := range archs {
		data := make([]byte, 24)
		data[0], data[16] = byte(i), byte(i)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var words [4]uint64
		for i := range words {
			if len(data) >= 8*i+8 {
				words[i] = binary.LittleEndian.Uint64(data[8*i:])
			}
		}
		r := rand.New(rand.NewPCG(words[0], words[1]))
		p := randomProfile(r, false)
		native := archs[words[2]%uint64(len(archs))].name
		p.Architectures = kin(native)
		agree(t, native, p, r, 300)
	})
}
