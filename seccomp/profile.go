package seccomp

import (
	"math"
	"slices"
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// The flags of seccomp(2), <linux/seccomp.h>.
const (
	FlagTSync            = 1 << 0 // SECCOMP_FILTER_FLAG_TSYNC
	FlagLog              = 1 << 1 // SECCOMP_FILTER_FLAG_LOG
	FlagSpecAllow        = 1 << 2 // SECCOMP_FILTER_FLAG_SPEC_ALLOW
	FlagNewListener      = 1 << 3 // SECCOMP_FILTER_FLAG_NEW_LISTENER
	FlagTSyncESRCH       = 1 << 4 // SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	FlagWaitKillableRecv = 1 << 5 // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
)

// flagTSync is in the spec's list, but has no constant in its Go types.
const flagTSync = "SECCOMP_FILTER_FLAG_TSYNC"

// A policy is a profile that was found right.
type policy struct {
	fallback uint32 // what the default action returns
	archs    []*arch
	entries  []entry
	flags    uint32
	notify   bool
}

// An entry is one of the profile's syscalls.
type entry struct {
	names  []string
	action uint32
	// The entry applies where all conditions of any of these hold. The second list is for
	// architectures of 32 bits.
	rules, narrow [][]condition
}

// A condition compares one argument.
type condition struct {
	arg   uint8
	op    operator
	value uint64
	mask  uint64 // maskedEqual only
}

type operator uint8

const (
	notEqual operator = iota
	lessThan
	lessEqual
	equal
	greaterEqual
	greaterThan
	maskedEqual
)

const maxArgs = 6

// check reads the profile strictly.
func check(native *arch, p *specs.LinuxSeccomp) (*policy, error) {
	var err error
	c := &policy{}
	if c.fallback, err = checkAction("/defaultAction", string(p.DefaultAction), p.DefaultErrnoRet, "/defaultErrnoRet"); err != nil {
		return nil, err
	}
	c.notify = c.fallback == retUserNotif
	if p.ListenerMetadata != "" && p.ListenerPath == "" {
		return nil, &ProfileError{"/listenerMetadata", "must not be set without listenerPath"}
	}

	var listed []*arch
	for i, name := range p.Architectures {
		a := archByName(name)
		if a == nil {
			return nil, unknownValue(pointer("architectures", i), "architecture", string(name), archNames())
		}
		listed = append(listed, a)
	}
	c.archs = filtered(native, listed)

	c.entries = make([]entry, len(p.Syscalls))
	for i := range p.Syscalls {
		if c.entries[i], err = checkSyscall(i, &p.Syscalls[i]); err != nil {
			return nil, err
		}
		if c.entries[i].action == retUserNotif {
			c.notify = true
		}
	}
	c.flags, err = checkFlags(p.Flags, c.notify)
	return c, err
}

func checkSyscall(i int, s *specs.LinuxSyscall) (entry, error) {
	e := entry{names: s.Names}
	if len(s.Names) == 0 {
		return e, &ProfileError{pointer("syscalls", i, "names"), "must hold at least one name"}
	}
	if j := slices.Index(s.Names, ""); j >= 0 {
		return e, &ProfileError{pointer("syscalls", i, "names", j), "is empty; it is to be the name of a system call"}
	}
	var err error
	if e.action, err = checkAction(pointer("syscalls", i, "action"), string(s.Action), s.ErrnoRet, pointer("syscalls", i, "errnoRet")); err != nil {
		return e, err
	}
	conditions := make([]condition, len(s.Args))
	var seen, twice uint
	for j := range s.Args {
		a := &s.Args[j]
		if a.Index >= maxArgs {
			return e, &ProfileError{pointer("syscalls", i, "args", j, "index"), strconv.FormatUint(uint64(a.Index), 10) + " is not an argument; a system call has the arguments 0 to 5"}
		}
		op, ok := operatorOf(a.Op)
		if !ok {
			return e, unknownValue(pointer("syscalls", i, "args", j, "op"), "operator", string(a.Op), operatorNames[:])
		}
		conditions[j] = condition{arg: uint8(a.Index), op: op, value: a.Value}
		if op == maskedEqual {
			conditions[j].mask, conditions[j].value = a.Value, a.ValueTwo&a.Value
		}
		twice |= seen & (1 << a.Index)
		seen |= 1 << a.Index
	}
	e.rules = alternatives(conditions, twice != 0, math.MaxUint64)
	e.narrow = alternatives(conditions, twice != 0, math.MaxUint32)
	return e, nil
}

// alternatives makes rules of an entry's conditions. Mostly that is one, for all of them. But where
// an argument is named twice, runc takes each condition for a rule of its own, and profiles in the
// field (`personality` is 0, or 8, or …, in one entry) rely on that "or".
func alternatives(conditions []condition, each bool, bits uint64) [][]condition {
	// "No bits of it are to be …" says nothing; where that is all that a rule says, it has no
	// conditions.
	always := func(c condition) bool { return c.op == maskedEqual && c.mask&bits == 0 }
	switch {
	case !each && slices.ContainsFunc(conditions, always):
		return [][]condition{slices.DeleteFunc(slices.Clone(conditions), always)}
	case !each:
		return [][]condition{conditions}
	case slices.ContainsFunc(conditions, always):
		return [][]condition{nil}
	}
	var rules [][]condition
	for j := range conditions {
		rules = append(rules, conditions[j:j+1:j+1])
	}
	return rules
}

// rulesFor is the entry's rules on an architecture.
func (e *entry) rulesFor(a *arch) [][]condition {
	if a.wide {
		return e.rules
	}
	return e.narrow
}

func checkFlags(names []specs.LinuxSeccompFlag, notify bool) (uint32, error) {
	var flags uint32
	if names == nil {
		// Not even an empty list: runc's default. Without it, kernels before 5.16 switch the
		// mitigation of speculative store bypass on for each process with a filter, which costs it
		// speed. At the floor of Linux 5.10 the flag (4.17) is always there.
		flags = FlagSpecAllow
	}
	for i, name := range names {
		flag := flagValue(string(name))
		if flag == 0 {
			return 0, unknownValue(pointer("flags", i), "flag", string(name), flagNames[:])
		}
		flags |= flag
	}
	if !notify {
		// The kernel refuses this one with EINVAL where there is no listener to wait for.
		return flags &^ FlagWaitKillableRecv, nil
	}
	flags |= FlagNewListener
	if flags&FlagTSync != 0 {
		// Both want the return value of seccomp(2) for themselves; this one (Linux 5.7) takes it
		// from TSYNC, and without it the kernel answers EINVAL.
		flags |= FlagTSyncESRCH
	}
	return flags, nil
}

// flagValue is the value of a flag's name, or 0.
func flagValue(name string) uint32 {
	switch name {
	case flagTSync:
		return FlagTSync
	case string(specs.LinuxSeccompFlagLog):
		return FlagLog
	case string(specs.LinuxSeccompFlagSpecAllow):
		return FlagSpecAllow
	case string(specs.LinuxSeccompFlagWaitKillableRecv):
		return FlagWaitKillableRecv
	}
	return 0
}

func operatorOf(op specs.LinuxSeccompOperator) (operator, bool) {
	switch op {
	case specs.OpNotEqual:
		return notEqual, true
	case specs.OpLessThan:
		return lessThan, true
	case specs.OpLessEqual:
		return lessEqual, true
	case specs.OpEqualTo:
		return equal, true
	case specs.OpGreaterEqual:
		return greaterEqual, true
	case specs.OpGreaterThan:
		return greaterThan, true
	case specs.OpMaskedEqual:
		return maskedEqual, true
	}
	return 0, false
}

func archNames() []string {
	names := make([]string, len(archs))
	for i := range archs {
		names[i] = string(archs[i].name)
	}
	slices.Sort(names)
	return names
}
