package seccomp

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"syscall"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/seccomp/internal/cbpf"
)

// Watched is the filter with a listener that hears of the calls that it refuses by an errno, for
// [Notify]: answer each by the errno that [Filter.Verdict] gives. It lets nothing through that f
// doesn't, whatever the listener does, unless that answers by [Call.Continue]. Calls that f allows
// are as fast as before. Kills and SCMP_ACT_TRAP stay the kernel's to carry out, which alone can
// make them inescapable: no listener hears of them.
//
// The given errnos are not asked about either: ENOSYS, say, is what C libraries try first
// and do without.
//
// A filter that notifies already can't be watched: a thread has one listener only.
func (f *Filter) Watched(but ...syscall.Errno) (*Filter, error) {
	if f.Notify {
		return nil, errors.New("the profile uses SCMP_ACT_NOTIFY, and there can be one listener only")
	}
	w := *f
	w.Program = slices.Clone(f.Program)
	for i, ins := range w.Program {
		if ins.Code == cbpf.Return && ins.K&retActionFull == retErrno && !slices.Contains(but, syscall.Errno(ins.K&retData)) {
			w.Program[i].K = retUserNotif
		}
	}
	w.Notify = true
	w.Flags |= FlagNewListener
	if w.Flags&FlagTSync != 0 {
		w.Flags |= FlagTSyncESRCH // without it the kernel takes no TSYNC beside a listener
	}
	return &w, nil
}

// Verdict is what the filter does with a call: the action, and the errno or the message for the
// tracer.
func (f *Filter) Verdict(c *Call) (specs.LinuxSeccompAction, uint16) {
	a := archByName(c.Arch)
	if a == nil {
		return actionOf(badArch), 0
	}
	value, _ := cbpf.Run(f.Program, &cbpf.Data{Number: c.Number, Arch: a.audit, IP: c.Address, Args: c.Args}, a.bigEndian)
	return actionOf(value), uint16(value & retData)
}

// Rules are a profile's, to find what in it decides a call.
type Rules struct {
	policy *policy
	tables []table
}

// RulesOf reads a profile, once for any number of calls.
func RulesOf(profile *specs.LinuxSeccomp) (*Rules, error) {
	p, tables, _, err := analyse(NativeArch(), profile)
	if err != nil {
		return nil, err
	}
	return &Rules{p, tables}, nil
}

// Decide finds what decides a call: the JSON pointer of an entry, as /syscalls/7, or of the default
// action, and what it does, as "ERRNO EPERM".
func (rules *Rules) Decide(c *Call) (pointerTo, result string) {
	p := rules.policy
	value, denying := p.enosys()
	t := tableOf(rules.tables, c.Arch)
	if amd64 := tableOf(rules.tables, specs.ArchX86_64); t == nil && c.Arch == specs.ArchX32 && amd64 != nil && denying && amd64.known {
		return "/architectures", describe(value) // see layTable
	}
	if t == nil {
		return "/architectures", describe(badArch)
	}
	i, named := slices.BinarySearchFunc(t.calls, c.Number, func(r resolved, number uint32) int { return cmp.Compare(r.number, number) })
	if named {
		for _, r := range t.calls[i].rules {
			if r.holds(t.arch, &c.Args) {
				return pointer("syscalls", r.entry), describe(r.action)
			}
		}
		return "/defaultAction", describe(p.fallback)
	}
	if denying && t.known && c.Number > t.newest && ageTells(t.arch, c.Number) {
		return "/defaultAction", describe(value)
	}
	return "/defaultAction", describe(p.fallback)
}

func (r *rule) holds(a *arch, args *[maxArgs]uint64) bool {
	return !slices.ContainsFunc(r.conditions, func(c condition) bool { return !c.holds(a, args[c.arg]) })
}

// holds compares as the filter does: on architectures of 32 bits, the lower halves. There a value
// of more is greater than all arguments.
func (c *condition) holds(a *arch, arg uint64) bool {
	value, mask := c.value, c.mask
	if !a.wide {
		arg &= math.MaxUint32
		switch c.op {
		case equal, notEqual, maskedEqual:
			value, mask = value&math.MaxUint32, mask&math.MaxUint32
		}
	}
	switch c.op {
	case notEqual:
		return arg != value
	case lessThan:
		return arg < value
	case lessEqual:
		return arg <= value
	case equal:
		return arg == value
	case greaterEqual:
		return arg >= value
	case greaterThan:
		return arg > value
	}
	return arg&mask == value
}
