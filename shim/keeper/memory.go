package keeper

import (
	"fmt"
	"math/bits"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/start/entry"
	"github.com/berth-runtime/berth/internal/sys"
)

// What a piece is about.
const (
	Container byte = iota + 1
	Streams
	Connection
	Call
	Event
	Exit
	Answers
	Forwarding // what is read from the events' connection, and
	Forwarded  // what is written to it
	Service
	Sandbox
	Upgrade
	Stage
	Socket  // a stream over a connection,
	Message // what its peer has sent,
	Use     // and what it is used for
)

// The memory: the page that the keeper has too, in the second half of which is the commit that is
// under way; the directory; and the pieces.
const (
	size = 256 << 20 // of which no more is had than is used

	offCount    = entry.PageRoom     // uint32: changes of a commit that has to be finished
	offLeft     = entry.PageRoom + 8 // and the changes: slot, entry, of eight bytes each
	mostAtATime = 100

	offDirectory = 4096
	slots        = 1 << 15
	offPieces    = offDirectory + slots*8
	unit         = 64 // of sizes and places
)

// Memory is the state of a shim that has a keeper. The methods of a nil Memory do nothing: there
// is no keeper. Of one that is full, all goes on as before, in memory of this process's own: its
// end is then that of the shim.
type Memory struct {
	b      []byte
	keeper int

	mu   sync.Mutex
	free [32][]uint32 // places of pieces, in units, by the logarithm of their size in units
	end  uint32       // of the pieces, in units
	gone []uint32     // slots that are free
	next uint32       // slots were used up to here
	// own, which is nil until the memory is full, is what was put into slots since: it is this
	// process's alone. Of one that holds nothing it is nil.
	own map[uint32][]byte
	// onFull is told when that happens, if set.
	onFull func()

	waiting sync.Mutex // one request to the keeper at a time
}

// Slot is the place of a piece. A nil Slot is none.
type Slot struct {
	m *Memory
	n uint32
}

// Create makes the memory for a shim that is to be started with a keeper.
func Create() (*os.File, error) {
	f, err := sys.MemoryFile("berth-shim-kept", nil)
	if err != nil {
		return nil, err
	}
	head := make([]byte, entry.OffMaxFD+8)
	*sys.LongWord(head[entry.OffMagic:]) = entry.Magic
	*sys.Word(head[entry.OffKeep:]), *sys.Word(head[entry.OffMaxFD:]) = 1, leastKept
	if err = f.Truncate(size); err == nil {
		_, err = f.WriteAt(head, 0)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("make the shim's memory: %w", err)
	}
	return f, nil
}

// Open gives the memory of this process: nil if it has no keeper.
func Open() (*Memory, error) {
	if !entry.Kept() {
		return nil, nil
	}
	unix.CloseOnExec(entry.MemoryFD)
	m, err := Map(entry.MemoryFD)
	if err != nil {
		return nil, err
	}
	atomic.StoreUint32(m.word(entry.OffRequest), 0)
	return m, nil
}

// leastKept is what descriptors are kept up to at least, and so many behind the greatest that is
// noted: what has just been opened by a shim that is killed is to be found, too.
const leastKept = 63

// Map gives what is in a memory by its descriptor.
func Map(fd int) (*Memory, error) {
	b, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the shim's memory: %w", err)
	}
	m := &Memory{b: b, keeper: os.Getppid()}
	m.recover()
	return m, nil
}

func (m *Memory) word(off int) *uint32 { return sys.Word(m.b[off:]) }

func (m *Memory) entry(slot uint32) *uint64 { return sys.LongWord(m.b[offDirectory+8*int(slot):]) }

// An entry is where a piece is, in units, and how long. It is replaced at one stroke.
func parse(e uint64) (place, length uint32) { return uint32(e >> 32), uint32(e) }

// class is the logarithm of the units that so many bytes take.
func class(length uint32) int { return bits.Len32((max(length, 1) - 1) / unit) }

// recover finds out what there is.
func (m *Memory) recover() {
	m.finish()
	m.end = offPieces / unit
	type extent struct{ from, to uint32 }
	var used []extent
	for n := range uint32(slots) {
		place, length := parse(*m.entry(n))
		if place == 0 {
			continue
		}
		m.next = n + 1
		used = append(used, extent{place, place + 1<<class(length)})
	}
	for n := range m.next {
		if *m.entry(n) == 0 {
			m.gone = append(m.gone, n)
		}
	}
	slices.SortFunc(used, func(a, b extent) int { return int(a.from) - int(b.from) })
	for _, u := range used {
		for m.end < u.from {
			c := bits.Len32(u.from-m.end) - 1
			m.free[c] = append(m.free[c], m.end)
			m.end += 1 << c
		}
		m.end = u.to
	}
}

// Slot makes a place for a piece. There is nothing there until a commit.
func (m *Memory) Slot() *Slot {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.gone); n > 0 {
		s := &Slot{m, m.gone[n-1]}
		m.gone = m.gone[:n-1]
		return s
	}
	if m.next == slots {
		m.overflow()
	}
	m.next++
	return &Slot{m, m.next - 1}
}

// At gives a slot by the number that Number has given, also to an earlier process: 0 is none.
func (m *Memory) At(n uint32) *Slot {
	if m == nil || n == 0 {
		return nil
	}
	return &Slot{m, n - 1}
}

// Number is for At.
func (s *Slot) Number() uint32 {
	if s == nil {
		return 0
	}
	return s.n + 1
}

// OnFull has f called when the memory is full.
func (m *Memory) OnFull(f func()) {
	if m != nil {
		m.onFull = f
	}
}

// overflow is the end of keeping: the next death is one as without a keeper. The lock must be held.
func (m *Memory) overflow() {
	if m.own != nil {
		return
	}
	m.own = make(map[uint32][]byte)
	atomic.StoreUint32(m.word(entry.OffKeep), 0)
	if m.onFull != nil {
		m.onFull()
	}
}

// Pieces are what slots hold, of a kind.
func (m *Memory) Pieces(kind byte) (list []Piece) {
	for n := range m.next {
		if b := m.piece(n); len(b) > 0 && b[0] == kind {
			list = append(list, Piece{&Slot{m, n}, b[1:]})
		}
	}
	return list
}

// piece is all that a slot holds, its kind first, or nothing.
func (m *Memory) piece(n uint32) []byte {
	if b, own := m.own[n]; own || n >= slots {
		return b
	}
	place, length := parse(*m.entry(n))
	if place == 0 {
		return nil
	}
	return m.b[int(place)*unit:][:length:length]
}

// Piece is what a slot holds.
type Piece struct {
	*Slot
	Data []byte
}

// InPlace is what a commit with Room has put into the slot, to be changed there.
func (s *Slot) InPlace() ([]byte, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	b := s.m.piece(s.n)
	if len(b) < unit {
		return nil, fmt.Errorf("there is nothing to be changed at %d in the shim's memory", s.n)
	}
	return b[unit:], nil
}

// InPlace is what a commit with Room has put into the slot of a piece.
func (p Piece) InPlace() []byte { return p.Data[unit-1:] }

// Holds notes a descriptor that is to be kept, and so are some behind it: one that has just been
// made is noted nowhere yet.
func (m *Memory) Holds(fd uint32) {
	if m == nil {
		return
	}
	word := m.word(entry.OffMaxFD)
	fd += leastKept
	for {
		now := atomic.LoadUint32(word)
		if fd <= now || atomic.CompareAndSwapUint32(word, now, fd) {
			return
		}
	}
}

// Kept says whether there was a process before this one, and how it ended: as waitid(2) has it.
func (m *Memory) Kept() (code, status int, kept bool) {
	if m == nil || *m.word(entry.OffCode) == 0 {
		return 0, 0, false
	}
	return int(int32(*m.word(entry.OffCode))), int(int32(*m.word(entry.OffStatus))), true
}
