package seccomp

import (
	"math"

	"github.com/berth-runtime/berth/seccomp/internal/cbpf"
)

// Arguments have 64 bits and BPF's one register has 32, so that a comparison takes two loads and
// two or three jumps. Rules for one call mostly compare the same argument over and over (the ioctls
// that are allowed), with the same upper half, zero. So the compiler keeps in mind, along each
// path, what the register holds and what is known of the upper half of the argument compared last,
// and leaves out each load and jump whose outcome is known. A list of n values costs n + 3
// instructions that way, and not 4n.
//
// A rule can be reached with different knowledge and is then compiled once for each. With a profile
// made to be nasty that could grow past the kernel's limit, where without it the filter would fit;
// then it is done again with graph.forget.
type knowledge struct {
	register int8 // the word of the arguments that is in the register, or nothing
	arg      int8 // the argument whose upper half is known to be (is), or not to be (isNot), high; or nothing
	fact     fact
	high     uint32
}

type fact uint8

const (
	is fact = iota + 1
	isNot
)

const nothing = -1

// A branch is what follows a comparison, given what is known then.
type branch func(knowledge) nodeID

// A decision compiles the rules of one call.
type decision struct {
	*graph
	arch     *arch
	rules    []rule
	fallback uint32
	done     map[place]nodeID
}

// A place is a condition of a rule, and what is known there.
type place struct {
	rule, condition int
	knowledge
}

// decide is the code for a call: its result, or the comparisons that lead to one.
func (g *graph) decide(a *arch, rules []rule, fallback uint32) nodeID {
	if len(rules[0].conditions) == 0 {
		return g.ret(rules[0].action)
	}
	if len(rules) > cbpf.MaxInstructions {
		g.full = true // each takes an instruction at least
		return g.ret(fallback)
	}
	d := decision{graph: g, arch: a, rules: rules, fallback: fallback, done: make(map[place]nodeID)}
	return d.at(place{0, 0, knowledge{register: nothing, arg: nothing}})
}

func (d *decision) at(p place) nodeID {
	if p.rule == len(d.rules) {
		return d.ret(d.fallback)
	}
	r := &d.rules[p.rule]
	if p.condition == len(r.conditions) {
		return d.ret(r.action)
	}
	if d.forget {
		p.knowledge = knowledge{register: nothing, arg: nothing}
	}
	if id, ok := d.done[p]; ok || d.full {
		return id
	}
	id := d.compare(&r.conditions[p.condition], p.knowledge,
		func(k knowledge) nodeID { return d.at(place{p.rule, p.condition + 1, k}) },
		func(k knowledge) nodeID { return d.at(place{p.rule + 1, 0, k}) })
	d.done[p] = id
	return id
}

func (d *decision) compare(c *condition, k knowledge, yes, no branch) nodeID {
	switch c.op {
	case notEqual:
		return d.equal(c, k, no, yes)
	case lessThan:
		return d.greater(cbpf.JumpGreaterEq, c, k, no, yes)
	case lessEqual:
		return d.greater(cbpf.JumpGreater, c, k, no, yes)
	case equal:
		return d.equal(c, k, yes, no)
	case greaterEqual:
		return d.greater(cbpf.JumpGreaterEq, c, k, yes, no)
	case greaterThan:
		return d.greater(cbpf.JumpGreater, c, k, yes, no)
	default:
		return d.masked(c, k, yes, no)
	}
}

func (d *decision) equal(c *condition, k knowledge, yes, no branch) nodeID {
	low := func(k knowledge) nodeID {
		return d.withLow(c.arg, k, func(k knowledge) nodeID {
			return d.jump(cbpf.JumpEqual, uint32(c.value), yes(k), no(k))
		})
	}
	return d.highEqual(c.arg, uint32(c.value>>32), k, low, no)
}

// highEqual compares the upper half of an argument for equality.
func (d *decision) highEqual(arg uint8, high uint32, k knowledge, yes, no branch) nodeID {
	if !d.arch.wide {
		return yes(k)
	}
	if k.arg == int8(arg) {
		switch {
		case k.fact == is && k.high == high:
			return yes(k)
		case k.fact == is, k.high == high:
			return no(k)
		}
	}
	return d.withHigh(arg, k, func(k knowledge) nodeID {
		return d.jump(cbpf.JumpEqual, high, yes(k.with(arg, is, high)), no(k.with(arg, isNot, high)))
	})
}

// greater is for both "greater" (JumpGreater) and "greater or equal" (JumpGreaterEq).
func (d *decision) greater(jump uint16, c *condition, k knowledge, yes, no branch) nodeID {
	high, value := uint32(c.value>>32), uint32(c.value)
	if !d.arch.wide && high != 0 {
		return no(k) // libseccomp cuts the value down, and lets "at least 4 GiB" hold for everything
	}
	switch {
	case jump == cbpf.JumpGreaterEq && c.value == 0:
		return yes(k)
	case jump == cbpf.JumpGreater && (c.value == math.MaxUint64 || !d.arch.wide && value == math.MaxUint32):
		return no(k)
	}
	low := func(k knowledge) nodeID {
		return d.withLow(c.arg, k, func(k knowledge) nodeID { return d.jump(jump, value, yes(k), no(k)) })
	}
	switch {
	case !d.arch.wide:
		return low(k)
	case k.arg == int8(c.arg) && k.fact == is:
		if k.high == high {
			return low(k)
		} else if k.high > high {
			return yes(k)
		}
		return no(k)
	}
	return d.withHigh(c.arg, k, func(k knowledge) nodeID {
		same := low(k.with(c.arg, is, high))
		notGreater := same
		if high > 0 {
			notGreater = d.jump(cbpf.JumpEqual, high, same, no(k.with(c.arg, isNot, high)))
		}
		if high == math.MaxUint32 {
			return notGreater
		}
		return d.jump(cbpf.JumpGreater, high, yes(k), notGreater)
	})
}

func (d *decision) masked(c *condition, k knowledge, yes, no branch) nodeID {
	low := func(k knowledge) nodeID {
		mask, value := uint32(c.mask), uint32(c.value)
		if mask == 0 {
			return yes(k)
		}
		return d.withLow(c.arg, k, func(k knowledge) nodeID { return d.bits(mask, value, k, yes, no) })
	}
	mask, value := uint32(c.mask>>32), uint32(c.value>>32)
	switch {
	case !d.arch.wide || mask == 0:
		return low(k)
	case mask == math.MaxUint32:
		return d.highEqual(c.arg, value, k, low, no)
	case k.arg == int8(c.arg) && k.fact == is:
		if k.high&mask == value {
			return low(k)
		}
		return no(k)
	}
	return d.withHigh(c.arg, k, func(k knowledge) nodeID { return d.bits(mask, value, k, low, no) })
}

// bits compares some bits of the register.
func (d *decision) bits(mask, value uint32, k knowledge, yes, no branch) nodeID {
	switch {
	case mask == math.MaxUint32:
		return d.jump(cbpf.JumpEqual, value, yes(k), no(k))
	case value == 0:
		return d.jump(cbpf.JumpSet, mask, no(k), yes(k))
	case value == mask && mask&(mask-1) == 0:
		return d.jump(cbpf.JumpSet, mask, yes(k), no(k))
	}
	k.register = nothing
	return d.and(mask, d.jump(cbpf.JumpEqual, value, yes(k), no(k)))
}

func (k knowledge) with(arg uint8, f fact, high uint32) knowledge {
	k.arg, k.fact, k.high = int8(arg), f, high
	return k
}

// withHigh has the upper half of an argument in the register, and withLow the lower.
func (d *decision) withHigh(arg uint8, k knowledge, then branch) nodeID {
	return d.withWord(arg, !d.arch.bigEndian, k, then)
}

func (d *decision) withLow(arg uint8, k knowledge, then branch) nodeID {
	return d.withWord(arg, d.arch.bigEndian, k, then)
}

func (d *decision) withWord(arg uint8, second bool, k knowledge, then branch) nodeID {
	word := int8(2 * arg)
	if second {
		word++
	}
	if k.register == word {
		return then(k)
	}
	k.register = word
	return d.load(cbpf.OffsetArgs+4*uint32(word), then(k))
}
