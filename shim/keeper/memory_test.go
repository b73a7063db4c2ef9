package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"

	"github.com/berth-runtime/berth/internal/start/entry"
)

// created gives what each shim sees of one memory, the next whenever one is killed.
func created(t *testing.T) (next func() *Memory) {
	t.Helper()
	f, err := Create()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return func() *Memory {
		t.Helper()
		m, err := Map(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

// held is what slots hold, by their numbers.
func held(m *Memory) map[uint32]string {
	all := make(map[uint32]string)
	for _, p := range m.Pieces(Exit) {
		all[p.Number()] = string(p.Data)
	}
	return all
}

// What was committed is there for the next shim; what was dropped is not, and its slot and place
// are used again.
func TestNextFindsWhatWasCommitted(t *testing.T) {
	next := created(t)
	m := next()
	want := make(map[uint32]string)
	var list []*Slot
	for i := range 100 {
		s := m.Slot()
		list = append(list, s)
		text := fmt.Sprint(i, string(bytes.Repeat([]byte("x"), i*i)))
		s.Put(Exit, []byte(text))
		want[s.Number()] = text
	}
	other := m.Slot()
	m.Commit(Change{Slot: list[3]}, Change{Slot: list[4], Kind: Exit, Data: []byte("new")}, Change{Slot: other, Kind: Exit, Data: []byte("other")})
	delete(want, list[3].Number())
	want[list[4].Number()], want[other.Number()] = "new", "other"
	if got := held(m); !maps.Equal(got, want) {
		t.Errorf("slots hold %d pieces, want %d", len(got), len(want))
	}
	end := m.end
	m.Slot().Put(Event, []byte("in the place of one that was dropped"))
	if m.end != end {
		t.Error("a place that is free is not used")
	}
	after := next()
	if got := held(after); !maps.Equal(got, want) {
		t.Errorf("the next finds %d pieces, want %d", len(got), len(want))
	}
	s := after.Slot()
	s.Put(Exit, []byte("3"))
	if got := held(next())[s.Number()]; got != "3" {
		t.Errorf("got %q", got)
	}
}

// A commit that a shim was killed in, when it had made one of two changes, is finished.
func TestCommitIsFinished(t *testing.T) {
	next := created(t)
	m := next()
	a, b := m.Slot(), m.Slot()
	m.Commit(Change{Slot: a, Kind: Exit, Data: []byte("a")}, Change{Slot: b, Kind: Exit, Data: []byte("b")})
	was := []uint64{*m.entry(a.n), *m.entry(b.n)}
	m.Commit(Change{Slot: a, Kind: Exit, Data: []byte("A")}, Change{Slot: b})
	// Back to the instant in which one of two has been made.
	*m.entry(b.n) = was[1]
	atomic.StoreUint32(m.word(offCount), 2)
	if got := held(next()); len(got) != 1 || got[a.Number()] != "A" {
		t.Errorf("the next finds %q", got)
	}
}

// fillings are the ways in which a memory becomes full.
var fillings = map[string]func(m *Memory){
	"slots": func(m *Memory) {
		for range slots {
			m.Slot().Put(Call, nil)
		}
	},
	"bytes": func(m *Memory) {
		// Each takes twice its size.
		for big := make([]byte, 8<<20); m.own == nil; {
			m.Slot().Put(Call, big)
		}
	},
	"changes": func(m *Memory) {
		m.Commit(make([]Change, mostAtATime+1)...)
	},
}

// Of a memory that is full nothing is lost for those that go on with it. The keeper is told to end
// with this process, and no program is executed in its place.
func TestFull(t *testing.T) {
	for name, fill := range fillings {
		t.Run(name, func(t *testing.T) {
			m := created(t)()
			told := 0
			m.OnFull(func() { told++ })
			kept, dropped, changed := m.Slot(), m.Slot(), m.Slot()
			for _, s := range []*Slot{kept, dropped, changed} {
				s.Put(Exit, []byte("before"))
			}
			room := m.Slot()
			m.Commit(Change{Slot: room, Kind: Stage, Data: make([]byte, 100), Room: true})
			if *m.word(entry.OffKeep) != 1 {
				t.Fatal("the keeper is not to go on from the beginning")
			}
			if err := m.Next("/bin/true", "/bin/true"); err != nil {
				t.Fatal(err)
			}
			m.Confirm()
			fill(m)
			if told != 1 || *m.word(entry.OffKeep) != 0 {
				t.Fatalf("told %d times that it is full, and the keeper goes on: %d", told, *m.word(entry.OffKeep))
			}
			if err := m.Next("/bin/true", "/bin/true"); !errors.Is(err, ErrFull) || m.Stage() != entry.StageNone {
				t.Errorf("another program is next: %v, stage %d", err, m.Stage())
			}

			more, gone := m.Slot(), m.Slot()
			gone.Put(Exit, []byte("gone"))
			m.Commit(Change{Slot: dropped}, Change{Slot: gone}, Change{Slot: changed, Kind: Exit, Data: []byte("after")}, Change{Slot: more, Kind: Exit, Data: []byte("more")})
			want := map[uint32]string{kept.Number(): "before", changed.Number(): "after", more.Number(): "more"}
			if got := held(m); !maps.Equal(got, want) {
				t.Errorf("slots hold %q, want %q", got, want)
			}
			if at := m.At(more.Number()); *at != *more {
				t.Errorf("slot %v is %v by its number", *more, *at)
			}
			for _, s := range []*Slot{room, more} {
				m.Commit(Change{Slot: s, Kind: Stage, Data: []byte("changed in its place"), Room: true})
				b, err := s.InPlace()
				if err != nil || string(b) != "changed in its place" {
					t.Fatalf("room %q, %v", b, err)
				}
				b[0] = 'C'
				if b, _ = s.InPlace(); string(b) != "Changed in its place" {
					t.Errorf("room %q after a change", b)
				}
			}
			if told != 1 {
				t.Errorf("told %d times", told)
			}
		})
	}
}

// Without a keeper nothing is done, and nothing is found.
func TestWithoutKeeper(t *testing.T) {
	var m *Memory
	s := m.Slot()
	s.Put(Exit, nil)
	s.Drop()
	m.OnFull(func() { t.Error("told of nothing") })
	m.Commit(Change{Slot: s, Kind: Exit})
	m.Holds(100)
	if _, _, kept := m.Kept(); kept || s.Number() != 0 || m.At(1) != nil {
		t.Error("there is something")
	}
}
