package spec

import "github.com/berth-runtime/berth/internal/json"

// place is where the checker stands in a config. It is a list through the
// stack, turned into a JSON pointer only when there is something to say about
// the place: most configs are right, and then nothing is allocated.
type place struct {
	up    *place // nil at the top
	key   string
	index int // -1 where key counts
}

// at is the place of a key below p.
func (p *place) at(key string) place { return place{up: p, key: key, index: -1} }

// nth is the place of an array's element.
func (p *place) nth(i int) place { return place{up: p, index: i} }

// appendTo appends the JSON pointer of a place. It recurses, instead of
// gathering the places in a slice, so that none of them moves to the heap.
func (p *place) appendTo(pointer []byte) []byte {
	if p.up == nil {
		return pointer
	}
	pointer = p.up.appendTo(pointer)
	if p.index < 0 {
		return json.AppendKey(pointer, p.key)
	}
	return json.AppendIndex(pointer, p.index)
}
