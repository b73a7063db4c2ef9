package seccomp

import (
	"slices"

	"github.com/berth-runtime/berth/seccomp/internal/sysnum"
)

// Resolved is one system call number of one architecture, and the rules that decide it: either one
// without conditions, or those with conditions in the profile's order, of which the first that
// holds applies, and the default where none does.
type resolved struct {
	number uint32
	rules  []rule
}

// A rule is one way for an entry of the profile to apply.
type rule struct {
	conditions []condition // none: always
	action     uint32
	entry      int // index in the profile's syscalls
}

// A table is what the profile says about one architecture.
type table struct {
	*arch
	calls []resolved // by number
	// newest is the greatest number that the profile names, which tells its age; known is false if
	// it names none.
	newest uint32
	known  bool
}

// names is the profile's names, looked up once for all architectures.
type names struct {
	ids     [][]sysnum.ID // for each entry and name; unknownID where no architecture has such a call
	count   int
	unknown []UnknownName
}

const unknownID = sysnum.ID(0xffff)

func (p *policy) lookUp() names {
	var n names
	for i := range p.entries {
		n.count += len(p.entries[i].names)
	}
	all := make([]sysnum.ID, 0, n.count)
	n.ids = make([][]sysnum.ID, len(p.entries))
	for i := range p.entries {
		start := len(all)
		for j, name := range p.entries[i].names {
			id, ok := sysnum.Find(name)
			if !ok {
				id = unknownID
				n.unknown = append(n.unknown, UnknownName{Pointer: pointer("syscalls", i, "names", j), Name: name})
			}
			all = append(all, id)
		}
		n.ids[i] = all[start:]
	}
	return n
}

// resolve gives each rule to the calls of the architecture that it names. Names that the
// architecture lacks are left out: profiles list those of all architectures.
func (p *policy) resolve(a *arch, n *names) table {
	t := table{arch: a}
	// Each rule with the number of its call, in the order of the profile. A key is the number and
	// the place in rules, so that sorting the keys sorts by number first and by the profile's order
	// second.
	rules, keys := make([]rule, 0, n.count+16), make([]uint64, 0, n.count+16)
	add := func(number uint32, r rule) {
		keys = append(keys, uint64(number)<<32|uint64(len(rules)))
		rules = append(rules, r)
	}
	mux := multiplexerOf(a)
	for i := range p.entries {
		e := &p.entries[i]
		// A rule that says what the default says is left out, as in runc: libseccomp refuses it.
		redundant := e.action == p.fallback
		for j, name := range e.names {
			if mux != nil && !redundant {
				if c := mux.note(name, e, i, len(rules), p.fallback); c != nil {
					add(c.multiplexer, rule{c.conditions(), p.fallback, i})
				}
			}
			id := n.ids[i][j]
			if id == unknownID {
				continue
			}
			nr, ok := a.table.Number(id)
			if !ok {
				continue
			}
			if ageTells(a, nr) && (!t.known || nr > t.newest) {
				t.newest, t.known = nr, true
			}
			if redundant {
				continue
			}
			for _, conditions := range e.rulesFor(a) {
				add(nr, rule{conditions, e.action, i})
			}
		}
	}
	if mux != nil {
		for i := range mux.noted {
			n := &mux.noted[i]
			rules[n.rule].action, rules[n.rule].entry = n.action, n.entry
		}
		keys = slices.DeleteFunc(keys, func(key uint64) bool { return rules[uint32(key)].action == p.fallback })
	}
	slices.Sort(keys)

	t.calls = make([]resolved, 0, len(keys))
	for len(keys) > 0 {
		number := uint32(keys[0] >> 32)
		end := 1
		for end < len(keys) && uint32(keys[end]>>32) == number {
			end++
		}
		first := uint32(keys[0])
		mine := rules[first : first+1 : first+1]
		if end > 1 {
			mine = make([]rule, end)
			for i := range mine {
				mine[i] = rules[uint32(keys[i])]
			}
		}
		// A rule without conditions takes the call over, wherever it stands; of several the first.
		// That is libseccomp's way, and so of every profile in use.
		if k := slices.IndexFunc(mine, func(r rule) bool { return len(r.conditions) == 0 }); k >= 0 {
			mine = mine[k : k+1 : k+1]
		}
		t.calls = append(t.calls, resolved{number, mine})
		keys = keys[end:]
	}
	return t
}

// ageTells says whether a number belongs to the list that grows by the newest calls with each
// kernel.
func ageTells(a *arch, number uint32) bool {
	first, last := ageless(a)
	return number < first || number > last
}

// ageless is the numbers that were given out apart from that list.
func ageless(a *arch) (first, last uint32) {
	switch a.table {
	case &sysnum.ARM:
		return sysnum.ARMPrivate, sysnum.ARMPrivate + 6 // as old as ARM
	case &sysnum.X32:
		return x32Bit | 512, x32Bit | 547 // set aside for x32 in Linux 3.4, far above the list of then
	}
	return 1, 0
}
