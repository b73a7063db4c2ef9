package spec

import (
	"slices"

	"github.com/berth-runtime/berth/internal/json"
)

// place is where the checker stands in a config. It is a list through the
// stack, turned into a JSON pointer only when there is something to say about
// the place: most configs are right, and then nothing is allocated.
type place struct {
	up    *place
	key   string
	index int // where key is ""
}

// at is the place of a key below p.
func (p *place) at(key string) place { return place{up: p, key: key} }

// nth is the place of an array's element.
func (p *place) nth(i int) place { return place{up: p, index: i} }

// pointer returns the JSON pointer of a place.
func (p *place) pointer() string {
	var trail []*place
	for ; p.up != nil; p = p.up {
		trail = append(trail, p)
	}
	var b []byte
	for _, p := range slices.Backward(trail) {
		if p.key == "" {
			b = json.AppendIndex(b, p.index)
		} else {
			b = json.AppendKey(b, p.key)
		}
	}
	return string(b)
}
