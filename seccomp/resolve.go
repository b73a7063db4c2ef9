package seccomp

import (
	"cmp"
	"slices"

	"github.com/berth-runtime/berth/seccomp/internal/sysnum"
)

// Resolved is one system call number of one architecture, and the rules that decide it: either one without conditions, or
// those with conditions in the profile's order, of which the first that holds applies, and the default where none does.
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
	// newest is the greatest number that the profile names, which tells its age; known is false if it names none.
	newest uint32
	known  bool
}

// names is the profile's names, looked up once for all architectures.
type names struct {
	ids     [][]sysnum.ID // for each entry and name; unknownID where no architecture has such a call
	unknown []UnknownName
}

const unknownID = sysnum.ID(0xffff)

func (p *policy) lookUp() names {
	var n names
	total := 0
	for i := range p.entries {
		total += len(p.entries[i].names)
	}
	all := make([]sysnum.ID, 0, total)
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

// A reference is a rule on its way to its call. Its key sorts by number first, by place in the profile second.
type reference struct {
	key  uint64
	rule rule
}

func sortKey(number uint32, order int) uint64 {
	return uint64(number)<<32 | uint64(order)
}

// resolve gives each rule to the calls of the architecture that it names. Names that the architecture lacks are left
// out: profiles list those of all architectures.
func (p *policy) resolve(a *arch, n *names) table {
	t := table{arch: a}
	refs := make([]reference, 0, 512)
	mux := multiplexerOf(a)
	order := 0
	for i := range p.entries {
		e := &p.entries[i]
		// A rule that says what the default says is left out, as in runc: libseccomp refuses it.
		redundant := e.action == p.fallback
		for j, name := range e.names {
			if mux != nil && !redundant {
				mux.note(name, e, i, order, p.fallback)
			}
			if id := n.ids[i][j]; id != unknownID {
				if nr, ok := a.table.Number(id); ok {
					if ageTells(a, nr) && (!t.known || nr > t.newest) {
						t.newest, t.known = nr, true
					}
					if !redundant {
						for _, conditions := range e.rulesFor(a) {
							refs = append(refs, reference{sortKey(nr, order), rule{conditions, e.action, i}})
							order++
						}
					}
				}
			}
			order++
		}
	}
	if mux != nil {
		refs = mux.references(refs, p.fallback)
	}
	// Sorted beside the references, which are larger.
	type place struct {
		key uint64
		ref int
	}
	places := make([]place, len(refs))
	for i := range refs {
		places[i] = place{refs[i].key, i}
	}
	slices.SortFunc(places, func(x, y place) int { return cmp.Compare(x.key, y.key) })
	rules := make([]rule, len(refs))
	for i := range places {
		rules[i] = refs[places[i].ref].rule
	}

	t.calls = make([]resolved, 0, len(refs))
	for start := 0; start < len(places); {
		number := uint32(places[start].key >> 32)
		end := start + 1
		for end < len(places) && uint32(places[end].key>>32) == number {
			end++
		}
		mine := rules[start:end:end]
		// A rule without conditions takes the call over, wherever it stands; of several the first. That is libseccomp's
		// way, and so of every profile in use.
		if k := slices.IndexFunc(mine, func(r rule) bool { return len(r.conditions) == 0 }); k >= 0 {
			mine = mine[k : k+1 : k+1]
		}
		t.calls = append(t.calls, resolved{number, mine})
		start = end
	}
	return t
}

// ageTells says whether a number belongs to the list that grows by the newest calls with each kernel.
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
