package seccomp

import (
	"slices"

	"github.com/berth-runtime/berth/seccomp/internal/cbpf"
)

// A layout gives the nodes of a graph their places. BPF jumps forward only, so that it works from
// the end: when an instruction is written, all it can jump to is behind it, at a known distance.
// The comparisons reach 255 instructions far; where that isn't enough, a return is repeated, or a
// plain jump, which reaches everywhere, put in between.
type layout struct {
	*graph
	program []cbpf.Instruction // from the end
	first   []int32            // place of each node, counted from the end, or unplaced
	nearest []int32            // the same, or of the latest stand-in for it
}

const unplaced = -1

func (g *graph) layOut(root nodeID) []cbpf.Instruction {
	l := layout{graph: g, first: make([]int32, len(g.nodes)), nearest: make([]int32, len(g.nodes)),
		program: make([]cbpf.Instruction, 0, len(g.nodes)+len(g.nodes)/8)}
	for i := range l.first {
		l.first[i], l.nearest[i] = unplaced, unplaced
	}
	l.put(root)
	l.next(root)
	slices.Reverse(l.program)
	return l.program
}

func (l *layout) write(ins cbpf.Instruction) int32 {
	l.program = append(l.program, ins)
	return int32(len(l.program) - 1)
}

func (l *layout) put(id nodeID) {
	if l.first[id] != unplaced {
		return
	}
	n := &l.nodes[id]
	ins := cbpf.Instruction{Code: n.code, K: n.k}
	switch n.code {
	case cbpf.Return:
	case cbpf.LoadWord, cbpf.And:
		l.put(n.yes)
		l.next(n.yes)
	default:
		// The longer side first, so that the jump over the other is short.
		if l.size[n.yes] >= l.size[n.no] {
			l.put(n.yes)
			l.put(n.no)
		} else {
			l.put(n.no)
			l.put(n.yes)
		}
		for !l.near(n.yes) || !l.near(n.no) {
			if l.near(n.yes) {
				l.repeat(n.no)
			} else {
				l.repeat(n.yes)
			}
		}
		ins.Jt, ins.Jf = uint8(l.distance(n.yes)), uint8(l.distance(n.no))
	}
	l.first[id] = l.write(ins)
	l.nearest[id] = l.first[id]
}

// distance is how many instructions lie between the one to be written next and the node.
func (l *layout) distance(id nodeID) int32 {
	return int32(len(l.program)) - l.nearest[id] - 1
}

func (l *layout) near(id nodeID) bool {
	return l.distance(id) <= 255
}

// next makes sure that the node follows what is written next.
func (l *layout) next(id nodeID) {
	if l.distance(id) > 0 {
		l.repeat(id)
	}
}

// repeat writes a stand-in for a node that is too far away.
func (l *layout) repeat(id nodeID) {
	n := &l.nodes[id]
	if n.code == cbpf.Return {
		l.nearest[id] = l.write(cbpf.Instruction{Code: n.code, K: n.k})
		return
	}
	l.nearest[id] = l.write(cbpf.Instruction{Code: cbpf.Jump, K: uint32(int32(len(l.program)) - l.first[id] - 1)})
}
