package keeper

import (
	"sync/atomic"

	"github.com/berth-runtime/berth/internal/sys"
)

// A Change is what a commit makes of a slot: nothing, if Kind is 0. With Room, what is in the slot
// is changed in its place later: see InPlace.
type Change struct {
	Slot *Slot
	Kind byte
	Data []byte
	Room bool
}

// before is how many bytes of a piece come before its data.
func (c *Change) before() int {
	if c.Room {
		return unit // so that numbers in it are aligned
	}
	return 1
}

// write makes the piece.
func (c *Change) write(b []byte) {
	b[0] = c.Kind
	copy(b[c.before():], c.Data)
}

// Commit makes all changes, or none if the process is killed meanwhile. Slots that hold nothing
// then are to be used no more.
func (m *Memory) Commit(changes ...Change) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.own != nil || !m.share(changes) {
		m.overflow()
		m.put(changes)
	}
	for _, c := range changes {
		if c.Slot != nil && c.Kind == 0 {
			m.gone = append(m.gone, c.Slot.n)
		}
	}
}

// share makes all changes in the shared memory, or none if there is no room. The lock must be held.
func (m *Memory) share(changes []Change) bool {
	if len(changes) > mostAtATime {
		return false
	}
	var before [mostAtATime]uint64
	count := 0
	for _, c := range changes {
		if c.Slot == nil {
			continue
		}
		now := uint64(0)
		if c.Kind != 0 {
			length := len(c.Data) + c.before()
			place, b := m.take(uint32(length))
			if b == nil {
				return false
			}
			c.write(b)
			now = uint64(place)<<32 | uint64(length)
		}
		before[count] = *m.entry(c.Slot.n)
		at := m.b[offLeft+16*count:]
		*sys.LongWord(at), *sys.LongWord(at[8:]) = uint64(c.Slot.n), now
		count++
	}
	atomic.StoreUint32(m.word(offCount), uint32(count))
	m.finish()
	for i := range count {
		m.giveBack(before[i])
	}
	return true
}

// put makes changes in this process's own memory. The lock must be held.
func (m *Memory) put(changes []Change) {
	for _, c := range changes {
		if c.Slot == nil {
			continue
		}
		m.own[c.Slot.n] = nil
		if c.Kind != 0 {
			b := make([]byte, len(c.Data)+c.before())
			c.write(b)
			m.own[c.Slot.n] = b
		}
	}
}

// Drop has nothing in a slot any more.
func (s *Slot) Drop() {
	if s != nil {
		s.m.Commit(Change{Slot: s})
	}
}

// Put has other data in a slot.
func (s *Slot) Put(kind byte, data []byte) {
	if s != nil {
		s.m.Commit(Change{Slot: s, Kind: kind, Data: data})
	}
}

// take gives a place of a piece. The lock must be held.
func (m *Memory) take(length uint32) (place uint32, b []byte) {
	c := class(length)
	if n := len(m.free[c]); n > 0 {
		place, m.free[c] = m.free[c][n-1], m.free[c][:n-1]
	} else {
		place = m.end
		if uint64(place)+1<<c > size/unit {
			return 0, nil
		}
		m.end += 1 << c
	}
	at := int(place) * unit
	return place, m.b[at : at+int(length) : at+unit<<c]
}

func (m *Memory) giveBack(e uint64) {
	if place, length := parse(e); place != 0 {
		c := class(length)
		m.free[c] = append(m.free[c], place)
	}
}

// finish does what is left of a commit. (A killed process has made all its stores up to an
// instant, and none after.)
func (m *Memory) finish() {
	count := m.word(offCount)
	for i := range int(atomic.LoadUint32(count)) {
		at := m.b[offLeft+16*i:]
		atomic.StoreUint64(m.entry(uint32(*sys.LongWord(at))), *sys.LongWord(at[8:]))
	}
	atomic.StoreUint32(count, 0)
}
