package supervisor

import (
	"fmt"
	"maps"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/ptr"
)

// fast are calls that programs make without the kernel's help on most machines, by its vDSO, so
// that no filter sees them. On a machine whose clock can't be read so they are calls like others.
var fast = []string{"clock_gettime", "getcpu", "gettimeofday", "time"}

// allowed is a profile that allows some calls and refuses the rest: for each call the conditions of
// which any is enough, nil for none.
type allowed struct {
	archs []specs.Arch
	calls map[string][][]specs.LinuxSeccompArg
	// older has C libraries take clone for clone3, whose flags a filter can't see.
	older bool
}

// Profile makes the profile that allows what was recorded and what the base allows, nil for none.
func (r *Record) Profile(base *specs.LinuxSeccomp) (*specs.LinuxSeccomp, error) {
	p := &allowed{calls: map[string][][]specs.LinuxSeccompArg{}}
	if base != nil {
		if err := p.read(base); err != nil {
			return nil, err
		}
	}
	for _, name := range append(plan.Unasked(), fast...) {
		if name != "sigreturn" { // only other architectures have it
			p.calls[name] = nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.archs {
		if a != "" && !slices.Contains(p.archs, a) {
			p.archs = append(p.archs, a)
		}
		if a == specs.ArchX86 || a == specs.ArchARM || a == specs.ArchS390 {
			p.calls["sigreturn"] = nil
		}
	}
	for _, u := range r.calls {
		switch {
		case u.name == "":
		case u.kind != nil && u.kind.memory && !u.whole && u.values[0] == 0:
			p.add("clone", (&use{kind: argumentOf("clone"), values: []uint64{0}}).conditions())
			if _, whole := p.calls[u.name]; !whole {
				p.older = true
			}
		default:
			p.add(u.name, u.conditions())
		}
	}
	return p.profile(), nil
}

func (p *allowed) add(name string, conditions [][]specs.LinuxSeccompArg) {
	had, there := p.calls[name]
	switch {
	case there && had == nil:
	case conditions == nil:
		p.calls[name] = nil
	default:
		for _, c := range conditions {
			if !slices.ContainsFunc(had, func(h []specs.LinuxSeccompArg) bool { return slices.Equal(h, c) }) {
				had = append(had, c)
			}
		}
		p.calls[name] = had
	}
}

// conditions allow what was seen, in the 32 bits that the kernel takes.
func (u *use) conditions() (list [][]specs.LinuxSeccompArg) {
	if u.kind == nil || u.whole || u.kind.memory {
		return nil
	}
	if u.kind.flags != 0 {
		rest := u.kind.flags &^ u.values[0]
		if rest == 0 {
			return nil
		}
		return [][]specs.LinuxSeccompArg{{{Index: u.kind.index, Value: rest, Op: specs.OpMaskedEqual}}}
	}
	slices.Sort(u.values)
	for _, v := range u.values {
		list = append(list, []specs.LinuxSeccompArg{{Index: u.kind.index, Value: 1<<32 - 1, ValueTwo: v, Op: specs.OpMaskedEqual}})
	}
	return list
}

// read takes a profile over, if it is one that allows some calls and refuses the rest.
func (p *allowed) read(base *specs.LinuxSeccomp) error {
	switch base.DefaultAction {
	case specs.ActErrno, specs.ActKill, specs.ActKillProcess, specs.ActKillThread, specs.ActTrap:
	default:
		return fmt.Errorf("its default action is %s; only a profile that refuses what it doesn't allow can be merged", base.DefaultAction)
	}
	p.archs = slices.Clone(base.Architectures)
	for i, s := range base.Syscalls {
		if slices.Equal(s.Names, []string{"clone3"}) && s.Action == specs.ActErrno && s.ErrnoRet != nil && unix.Errno(*s.ErrnoRet) == unix.ENOSYS {
			p.older = true
			continue
		}
		if s.Action != specs.ActAllow {
			return fmt.Errorf("/syscalls/%d has %s; only a profile whose rules allow can be merged", i, s.Action)
		}
		for _, name := range s.Names {
			if len(s.Args) == 0 {
				p.calls[name] = nil
			} else {
				p.add(name, [][]specs.LinuxSeccompArg{s.Args})
			}
		}
	}
	return nil
}

// profile writes what is allowed: first all that is allowed whatever its arguments, by name.
func (p *allowed) profile() *specs.LinuxSeccomp {
	slices.Sort(p.archs)
	out := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno, DefaultErrnoRet: ptr.To(uint(unix.EPERM)), Architectures: p.archs}
	var whole []string
	names := slices.Sorted(maps.Keys(p.calls))
	for _, name := range names {
		if p.calls[name] == nil {
			whole = append(whole, name)
		}
	}
	out.Syscalls = append(out.Syscalls, specs.LinuxSyscall{Names: whole, Action: specs.ActAllow})
	for _, name := range names {
		for _, conditions := range p.calls[name] {
			out.Syscalls = append(out.Syscalls, specs.LinuxSyscall{Names: []string{name}, Action: specs.ActAllow, Args: conditions})
		}
	}
	if _, there := p.calls["clone3"]; p.older && !there {
		out.Syscalls = append(out.Syscalls, specs.LinuxSyscall{Names: []string{"clone3"}, Action: specs.ActErrno, ErrnoRet: ptr.To(uint(unix.ENOSYS))})
	}
	return out
}
