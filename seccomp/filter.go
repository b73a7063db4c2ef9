package seccomp

import (
	"encoding/binary"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/seccomp/internal/cbpf"
)

// An Instruction is one instruction of classic BPF, the kernel's struct sock_filter.
type Instruction = cbpf.Instruction

// A Filter is a compiled profile.
type Filter struct {
	// Program is what seccomp(2) takes as struct sock_fprog.
	Program []Instruction
	// Flags are those for seccomp(2), FlagNewListener included if the filter can notify.
	Flags uint32
	// Notify says that some call is answered by SCMP_ACT_NOTIFY: loading the filter gives a
	// listener's descriptor.
	Notify bool
	// Archs are the architectures the filter is for, the native one first. A call of any other
	// kills the process.
	Archs []specs.Arch
	// Unknown lists the names in the profile that are no system call of any architecture: newer
	// than this package, or mistyped. They are left out of the filter, so that such a call gets the
	// default action, or ENOSYS.
	Unknown []UnknownName

	bigEndian bool
}

// An UnknownName is a name that no architecture knows, and its place in the profile.
type UnknownName struct {
	Pointer string
	Name    string
}

// Compile compiles a profile for the architecture of this program. An error is a *[ProfileError],
// with a JSON pointer from the profile on, or a *[TooLargeError].
//
// Where the spec leaves a meaning to libseccomp, it is the one that runc gives it:
//
//   - The filter is for the native architecture, whether listed or not, and for those listed that
//     machines of it run. A call of any other kills the process. x32, where it isn't listed, is
//     another architecture than x86-64; but see the last rule.
//   - A rule whose action is the default's is not a rule.
//   - A rule without conditions decides its call alone; of several, the first. Of those with
//     conditions the first that holds decides, in the profile's order, and the default where none
//     does.
//   - All conditions of an entry are to hold. But if it names one argument more than once, any of
//     them is enough.
//   - On architectures of 32 bits, x32 and n32 included, the lower halves are compared. (For "less"
//     and "greater" a value of more than 32 bits is greater than all arguments.)
//   - A name that an architecture lacks is left out there. [Filter.Unknown] has the names that all
//     lack.
//   - The errno is EPERM where none is given.
//   - A rule for a call that socketcall(2) or ipc(2) reach as well holds there too. Conditions
//     can't be checked there: the strictest of the default and the actions of the rules for the
//     call holds.
//   - A call that is newer than all that the profile names gets ENOSYS, if the default action
//     denies (ERRNO, TRAP, KILL…), so that C libraries fall back to older calls. x32 calls do too,
//     if x32 isn't listed.
func Compile(profile *specs.LinuxSeccomp) (*Filter, error) {
	return CompileFor(NativeArch(), profile)
}

// CompileFor compiles a profile for machines of another architecture.
func CompileFor(native specs.Arch, profile *specs.LinuxSeccomp) (*Filter, error) {
	p, tables, unknown, err := analyse(native, profile)
	if err != nil {
		return nil, err
	}
	f := &Filter{Flags: p.flags, Notify: p.notify, Unknown: unknown, bigEndian: p.archs[0].bigEndian}
	for _, a := range p.archs {
		f.Archs = append(f.Archs, a.name)
	}
	if f.Program = p.program(tables, newGraph()); f.Program == nil {
		frugal := newGraph()
		frugal.forget = true
		if f.Program = p.program(tables, frugal); f.Program == nil {
			return nil, &TooLargeError{cbpf.MaxInstructions}
		}
	}
	return f, nil
}

// analyse is the way from a profile to one table for each architecture.
func analyse(native specs.Arch, profile *specs.LinuxSeccomp) (*policy, []table, []UnknownName, error) {
	a := archByName(native)
	if a == nil {
		return nil, nil, nil, &UnsupportedArchError{native}
	}
	p, err := check(a, profile)
	if err != nil {
		return nil, nil, nil, err
	}
	n := p.lookUp()
	tables := make([]table, len(p.archs))
	for i, a := range p.archs {
		tables[i] = p.resolve(a, &n)
	}
	return p, tables, n.unknown, nil
}

func tableOf(tables []table, name specs.Arch) *table {
	for i := range tables {
		if tables[i].name == name {
			return &tables[i]
		}
	}
	return nil
}

// program is nil if it would be too long.
func (p *policy) program(tables []table, g *graph) []Instruction {
	// What no case below takes is a call of an architecture that the profile doesn't list.
	root := g.ret(badArch)
	for i := len(tables) - 1; i >= 0; i-- {
		t := &tables[i]
		if t.name == specs.ArchX32 && tableOf(tables, specs.ArchX86_64) != nil {
			continue // it has no AUDIT_ARCH of its own; x86-64 lays it out
		}
		d := dispatch{graph: g, policy: p}
		p.layTable(&d, t, tableOf(tables, specs.ArchX32))
		root = g.jump(cbpf.JumpEqual, t.audit, d.search(), root)
	}
	root = g.load(cbpf.OffsetArch, root)
	if g.full {
		return nil
	}
	program := g.layOut(root)
	if len(program) > cbpf.MaxInstructions {
		return nil
	}
	return program
}

// Bytes is the program as the kernel of the filter's machine reads it: an array of struct
// sock_filter.
func (f *Filter) Bytes() []byte {
	var order binary.AppendByteOrder = binary.LittleEndian
	if f.bigEndian {
		order = binary.BigEndian
	}
	b := make([]byte, 0, 8*len(f.Program))
	for _, ins := range f.Program {
		b = order.AppendUint16(b, ins.Code)
		b = append(b, ins.Jt, ins.Jf)
		b = order.AppendUint32(b, ins.K)
	}
	return b
}

// Decide is what becomes of a call of the native architecture with these arguments, the rest zero:
// the action, and the errno or the message for the tracer. It is false where there is no such call.
// So the loader of a filter can find out beforehand whether calls that are still to be made would
// be let through, or wait for an agent.
func (f *Filter) Decide(syscall string, args ...uint64) (action specs.LinuxSeccompAction, data uint16, ok bool) {
	a := archByName(f.Archs[0])
	number, ok := a.table.NumberOf(syscall)
	if !ok {
		return "", 0, false
	}
	call := cbpf.Data{Number: number, Arch: a.audit}
	copy(call.Args[:], args)
	value, _ := cbpf.Run(f.Program, &call, a.bigEndian)
	return actionOf(value), uint16(value & retData), true
}
