package seccomp

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/seccomp/internal/cbpf"
)

// An Explanation is what a filter does with each number.
type Explanation struct {
	Instructions int
	Default      string // the result of the default action
	BadArch      string // the result for calls of architectures that are not in Archs
	Flags        []string
	Archs        []ArchExplanation
	Ignored      []specs.Arch // listed by the profile, but no machine of the native architecture runs them
	Unknown      []UnknownName
}

// An ArchExplanation covers all numbers of one architecture, in order.
type ArchExplanation struct {
	Arch   specs.Arch
	Ranges []Range
}

// A Range is neighbouring numbers with one outcome.
type Range struct {
	First, Last uint32
	Names       []string // of the calls among the numbers
	Result      string   // ALLOW, ERRNO EPERM, …; the result where none of the rules holds, if there are rules
	Rules       []RuleExplanation
}

// A RuleExplanation is one rule of the profile.
type RuleExplanation struct {
	Pointer    string // of the entry, in the profile
	Result     string
	Conditions []string // all of them are to hold
	// Void says why the rule has no effect, if it has none.
	Void string
}

// Explain says what the filter of a profile does, on machines of an architecture.
func Explain(native specs.Arch, profile *specs.LinuxSeccomp) (*Explanation, error) {
	f, err := CompileFor(native, profile)
	if err != nil {
		return nil, err
	}
	p, tables, _, err := analyse(native, profile)
	if err != nil {
		return nil, err
	}
	e := &Explanation{Instructions: len(f.Program), Default: describe(p.fallback), BadArch: describe(badArch), Flags: flagsIn(f.Flags), Unknown: f.Unknown}
	for _, a := range profile.Architectures {
		if !slices.Contains(f.Archs, a) {
			e.Ignored = append(e.Ignored, a)
		}
	}
	for i := range tables {
		e.Archs = append(e.Archs, ArchExplanation{tables[i].name, p.ranges(&tables[i], tables)})
	}
	return e, nil
}

// ranges reads one table's numbers off the layout that the filter is made of.
func (p *policy) ranges(t *table, tables []table) []Range {
	d := dispatch{graph: newGraph(), policy: p}
	x32, first, last := tableOf(tables, specs.ArchX32), uint64(0), uint64(1)<<32
	switch t.name {
	case specs.ArchX32:
		first = x32Bit
		if amd64 := tableOf(tables, specs.ArchX86_64); amd64 != nil {
			t, x32 = amd64, t
		}
		p.layTable(&d, t, x32)
		t = tableOf(tables, specs.ArchX32)
	case specs.ArchX86_64:
		if x32 != nil {
			last = x32Bit
		}
		p.layTable(&d, t, x32)
	default:
		p.layTable(&d, t, nil)
	}

	type call struct {
		number uint32
		name   string
	}
	var calls []call
	for name, number := range t.table.All {
		calls = append(calls, call{number, name})
	}
	slices.SortFunc(calls, func(a, b call) int { return cmp.Compare(a.number, b.number) })

	var list []Range
	for i, s := range d.spans {
		end := uint64(1) << 32
		if i+1 < len(d.spans) {
			end = uint64(d.spans[i+1].start)
		}
		start := max(uint64(s.start), first)
		end = min(end, last)
		if start >= end {
			continue
		}
		r := Range{First: uint32(start), Last: uint32(end - 1)}
		for _, c := range calls {
			if uint64(c.number) >= start && uint64(c.number) < end {
				r.Names = append(r.Names, c.name)
			}
		}
		if n := d.nodes[s.node]; n.code == cbpf.Return {
			r.Result = describe(n.k)
		} else {
			r.Result = describe(p.fallback)
			k, _ := slices.BinarySearchFunc(t.calls, s.start, func(c resolved, number uint32) int { return cmp.Compare(c.number, number) })
			for _, rule := range t.calls[k].rules {
				r.Rules = append(r.Rules, rule.explain(t.arch))
			}
		}
		list = append(list, r)
	}
	return list
}

func (r *rule) explain(a *arch) RuleExplanation {
	e := RuleExplanation{Pointer: pointer("syscalls", r.entry), Result: describe(r.action)}
	for _, c := range r.conditions {
		e.Conditions = append(e.Conditions, c.describe(a))
	}
	return e
}

// describe writes a condition as it is compared on the architecture.
func (c *condition) describe(a *arch) string {
	arg, value, mask := "arg"+strconv.Itoa(int(c.arg)), c.value, c.mask
	if !a.wide {
		mask &= 0xffffffff
		switch c.op {
		case equal, notEqual, maskedEqual:
			value &= 0xffffffff
		}
	}
	if c.op == maskedEqual {
		return arg + " & " + number(mask) + " == " + number(value)
	}
	return arg + " " + [...]string{"!=", "<", "<=", "==", ">=", ">"}[c.op] + " " + number(value)
}

func number(v uint64) string {
	if v < 1000 {
		return strconv.FormatUint(v, 10)
	}
	return "0x" + strconv.FormatUint(v, 16)
}

// flagsIn names the flags that are given to seccomp(2).
func flagsIn(flags uint32) []string {
	var names []string
	for i, name := range [...]string{"TSYNC", "LOG", "SPEC_ALLOW", "NEW_LISTENER", "TSYNC_ESRCH", "WAIT_KILLABLE_RECV"} {
		if flags&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// A SyscallExplanation is what becomes of one call, on each architecture of the filter.
type SyscallExplanation struct {
	Name  string
	Archs []SyscallOnArch
}

// A SyscallOnArch is one call on one architecture.
type SyscallOnArch struct {
	Arch   specs.Arch
	Exists bool // there may be another way to the call (Via) where it doesn't
	Number uint32
	Rules  []RuleExplanation // all that name the call, in the profile's order
	Result string            // where none of the rules holds
	Reason string            // for Result
	Via    *Multiplexed
}

// Multiplexed is the way to a call by socketcall(2) or ipc(2).
type Multiplexed struct {
	Name   string // of the multiplexer
	Number uint32 // of the multiplexer
	Call   uint32 // its first argument for the call
	Result string
	Reason string
}

// An UnknownSyscallError is a name that no architecture has a system call for.
type UnknownSyscallError struct{ Name string }

func (e *UnknownSyscallError) Error() string {
	return "no architecture has a system call " + strconv.Quote(e.Name)
}

// ExplainSyscall says which rules of a profile decide a call, and how.
func ExplainSyscall(native specs.Arch, profile *specs.LinuxSeccomp, name string) (*SyscallExplanation, error) {
	p, tables, _, err := analyse(native, profile)
	if err != nil {
		return nil, err
	}
	e := &SyscallExplanation{Name: name}
	known := false
	for i := range archs {
		_, ok := archs[i].table.NumberOf(name)
		known = known || ok
	}
	if !known {
		return nil, &UnknownSyscallError{name}
	}
	for i := range tables {
		e.Archs = append(e.Archs, p.explainCall(&tables[i], name))
	}
	return e, nil
}

func (p *policy) explainCall(t *table, name string) SyscallOnArch {
	e := SyscallOnArch{Arch: t.name}
	e.Number, e.Exists = t.table.NumberOf(name)

	// The first rule without conditions decides; so does nothing that only repeats the default.
	deciding := -1
	for i := range p.entries {
		entry := &p.entries[i]
		if deciding < 0 && slices.Contains(entry.names, name) && entry.action != p.fallback && len(entry.rulesFor(t.arch)[0]) == 0 {
			deciding = i
		}
	}
	mentioned := false
	for i := range p.entries {
		entry := &p.entries[i]
		if !slices.Contains(entry.names, name) {
			continue
		}
		mentioned = true
		for _, conditions := range entry.rulesFor(t.arch) {
			r := rule{conditions, entry.action, i}
			x := r.explain(t.arch)
			switch {
			case entry.action == p.fallback:
				x.Void = "it says what the default says"
			case deciding >= 0 && i != deciding:
				x.Void = pointer("syscalls", deciding) + " has no conditions and so decides alone"
			}
			e.Rules = append(e.Rules, x)
		}
	}

	e.Result, e.Reason = describe(p.fallback), "the default action"
	value, denying := p.enosys()
	switch {
	case deciding >= 0:
		e.Result, e.Reason = describe(p.entries[deciding].action), pointer("syscalls", deciding)
	case e.Exists && !mentioned && denying && t.known && e.Number > t.newest && ageTells(t.arch, e.Number):
		e.Result, e.Reason = describe(value), "the call is newer than all that the profile names"
	}
	e.Via = p.explainMultiplexed(t, name, deciding)
	return e
}

func (p *policy) explainMultiplexed(t *table, name string, deciding int) *Multiplexed {
	sub, ok := subCallOf(name)
	mux := multiplexerOf(t.arch)
	if !ok || mux == nil {
		return nil
	}
	m := &Multiplexed{Name: "socketcall", Number: mux.socketcall, Call: uint32(sub.number)}
	if sub.viaIPC {
		m.Name, m.Number = "ipc", mux.ipc
	}
	for i := range p.entries {
		if entry := &p.entries[i]; entry.action != p.fallback && slices.Contains(entry.names, name) {
			mux.note(name, entry, i, i, p.fallback)
		}
	}
	k, named := slices.BinarySearchFunc(t.calls, m.Number, func(c resolved, number uint32) int { return cmp.Compare(c.number, number) })
	switch {
	case named && len(t.calls[k].rules[0].conditions) == 0:
		r := &t.calls[k].rules[0]
		m.Result, m.Reason = describe(r.action), pointer("syscalls", r.entry)+" names "+m.Name
	case len(mux.noted) > 0 && deciding >= 0:
		m.Result, m.Reason = describe(mux.noted[0].action), pointer("syscalls", deciding)
	case len(mux.noted) > 0:
		m.Result, m.Reason = describe(mux.noted[0].action), "the strictest of the default and the rules for "+name+", whose arguments can't be seen there"
	default:
		m.Result, m.Reason = describe(p.fallback), "the default action"
	}
	return m
}

// describeRule is a rule in one line.
func describeRule(r *RuleExplanation) string {
	s := r.Result
	if len(r.Conditions) > 0 {
		s += " if " + strings.Join(r.Conditions, " and ")
	}
	return s
}
