package seccomp

import (
	"math"

	"github.com/berth-runtime/berth/seccomp/internal/cbpf"
)

// A span is the numbers from start up to the next span's, which all have one outcome.
type span struct {
	start  uint32
	node   nodeID
	weight int // how much it matters to be quick there
}

// A dispatch builds, for the architectures that share one AUDIT_ARCH, the search by number.
//
// Up to where an outcome is found, a filter looks at the architecture and the number alone. That
// matters beyond the few instructions: since Linux 5.11 the kernel finds out, when a filter is
// loaded, for which numbers it says ALLOW without looking at anything else, and doesn't run it for
// those calls any more (seccomp_cache_prepare()).
type dispatch struct {
	*graph
	policy *policy
	spans  []span
}

// A gap is the outcome of numbers that the profile doesn't name.
type gap struct {
	node nodeID
	last uint32 // it holds up to this number
}

// search is the code that decides once the architecture is known.
func (d *dispatch) search() nodeID {
	return d.load(cbpf.OffsetNumber, d.tree(d.spans))
}

// add appends numbers from start on.
func (d *dispatch) add(start uint32, n nodeID, weight int) {
	if last := len(d.spans) - 1; last >= 0 && d.spans[last].node == n {
		d.spans[last].weight += weight
		return
	}
	d.spans = append(d.spans, span{start, n, weight})
}

// lay lays one table out over the numbers from first to last; gaps says what holds between its
// calls.
func (d *dispatch) lay(t *table, first, last uint32, gaps []gap) {
	next := uint64(first)
	fill := func(end uint64) { // the numbers from next up to but not including end
		for _, g := range gaps {
			if next >= end {
				return
			}
			if uint64(g.last) >= next {
				d.add(uint32(next), g.node, 1)
				next = min(end, uint64(g.last)+1)
			}
		}
	}
	for i := range t.calls {
		c := &t.calls[i]
		fill(uint64(c.number))
		n := d.decide(t.arch, c.rules, d.policy.fallback)
		weight := 2
		if len(c.rules[0].conditions) == 0 && c.rules[0].action == retAllow {
			weight = 4 // what is let through is what programs call
		}
		d.add(c.number, n, weight)
		next = uint64(c.number) + 1
	}
	fill(uint64(last) + 1)
}

// tree is a search tree over the spans, in which heavier spans lie nearer the root.
func (d *dispatch) tree(spans []span) nodeID {
	switch {
	case len(spans) == 1:
		return spans[0].node
	case len(spans) == 3 && spans[0].node == spans[2].node && spans[1].start+1 == spans[2].start:
		return d.jump(cbpf.JumpEqual, spans[1].start, spans[1].node, spans[0].node)
	}
	total := 0
	for _, s := range spans {
		total += s.weight
	}
	// Cut where the two sides differ least in weight.
	cut, best, left := 1, math.MaxInt, 0
	for i := 1; i < len(spans); i++ {
		left += spans[i-1].weight
		if diff := max(2*left-total, total-2*left); diff < best {
			cut, best = i, diff
		}
	}
	return d.jump(cbpf.JumpGreaterEq, spans[cut].start, d.tree(spans[cut:]), d.tree(spans[:cut]))
}
