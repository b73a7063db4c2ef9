package seccomp

import "github.com/berth-runtime/berth/seccomp/internal/cbpf"

// A graph is a filter before its instructions have places: each node is one instruction, which
// names the nodes that can follow it. Equal nodes are one node, so that equal pieces of code, and
// equal results, are recognised by their number, and code is shared wherever it can be.
type graph struct {
	nodes []node
	size  []int32 // for each node, the instructions from there on if nothing were shared, up to a limit
	index map[node]nodeID
	// returns are the nodes that end a filter: few, and asked for with each call of the profile.
	returns []nodeID
	// forget makes conditions be compiled one by one, see condition.go.
	forget bool
	full   bool // too many nodes: what comes out is of no use
}

type nodeID int32

// A node has its follower in yes, but for returns, that have none. Jumps have a second in no.
type node struct {
	code    uint16
	k       uint32
	yes, no nodeID
}

// Each node becomes at least one instruction, so that a graph of more nodes than this can't become
// a filter. It is far above the limit of instructions as some nodes are given up on the way.
const maxNodes = 8 * cbpf.MaxInstructions

func newGraph() *graph {
	return &graph{index: make(map[node]nodeID, 512), nodes: make([]node, 0, 512), size: make([]int32, 0, 512)}
}

func (g *graph) add(n node) nodeID {
	if id, ok := g.index[n]; ok {
		return id
	}
	if len(g.nodes) >= maxNodes {
		g.full = true
		return 0
	}
	id := nodeID(len(g.nodes))
	g.nodes = append(g.nodes, n)
	g.index[n] = id
	size := int32(1)
	switch n.code {
	case cbpf.Return:
	case cbpf.LoadWord, cbpf.And:
		size += g.size[n.yes]
	default:
		size += g.size[n.yes] + g.size[n.no]
	}
	g.size = append(g.size, min(size, 1<<20))
	return id
}

func (g *graph) ret(value uint32) nodeID {
	for _, id := range g.returns {
		if g.nodes[id].k == value {
			return id
		}
	}
	id := g.add(node{code: cbpf.Return, k: value})
	if len(g.returns) < 16 {
		g.returns = append(g.returns, id)
	}
	return id
}

// load is a load of a word and what follows it, or only that if it doesn't look at the word.
func (g *graph) load(offset uint32, next nodeID) nodeID {
	if code := g.nodes[next].code; code == cbpf.Return || code == cbpf.LoadWord {
		return next
	}
	return g.add(node{code: cbpf.LoadWord, k: offset, yes: next})
}

func (g *graph) and(mask uint32, next nodeID) nodeID {
	if code := g.nodes[next].code; code == cbpf.Return || code == cbpf.LoadWord {
		return next
	}
	return g.add(node{code: cbpf.And, k: mask, yes: next})
}

// jump is a comparison, or nothing if it makes no difference.
func (g *graph) jump(code uint16, k uint32, yes, no nodeID) nodeID {
	if yes == no {
		return yes
	}
	return g.add(node{code: code, k: k, yes: yes, no: no})
}
