package program

import (
	"encoding/binary"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A stamped Program tells when it made each call, and which of them failed where it goes on
// regardless. It is the same list with a clock_gettime in front of each op, and with the errnos
// of expected failures kept, so the interpreter knows nothing about it, and a Program that is not
// stamped is what it always was.
//
// The clock is that of the day: it alone means the same in each time namespace
// (time_namespaces(7)), and who starts the Program has the other times by it.

// stampsMagic begins the record of the stamps, so that it is taken for nothing else.
const stampsMagic = 0x42725374

// The record: magic and number of stamps as words of 32 bits, eight bytes of nothing, then for
// each a timespec of two 64-bit words, and the result of a call that may fail, or its negated
// errno.
const (
	stampsHead  = 16
	stampResult = 16 // where the result is
	stampLen    = 24
)

// SendStamps stamps all ops up to here, and sends the stamps in one message over a
// socket. What fails of it fails nothing else. A Program has one such place at most.
func (b *Builder) SendStamps(socket Arg) {
	if b.stamped > 0 {
		b.fail(nil, "the stamps are sent twice")
		return
	}
	next := b.NewLabel()
	b.Call(unix.SYS_SENDTO, socket, Int(0), Int(0), Imm(unix.MSG_NOSIGNAL), Int(0), Int(0)).ExpectAny(next)
	b.Place(next)
	b.stamped = b.count()
}

// stamp puts a clock_gettime in front of each op up to the one that sends. What is
// placed behind it, which is code for what seldom happens, is not stamped: part of it
// may come after a filter that kills who asks for the time.
func (b *Builder) stamp(ops []Op) []Op {
	n := b.stamped
	place := b.Zeroed(stampsHead + n*stampLen)
	if b.err != nil {
		return ops
	}
	binary.LittleEndian.PutUint32(b.buf[place.off:], stampsMagic)
	binary.LittleEndian.PutUint32(b.buf[place.off+4:], uint32(n))
	stamped := make([]Op, 0, len(ops)+n+n/4)
	b.stampAt = make([]int32, n)
	moved := make([]int32, len(ops)+1)
	for i := range ops {
		moved[i] = int32(len(stamped))
		if i >= n {
			stamped = append(stamped, ops[i])
			continue
		}
		at := place.Plus(stampsHead + i*stampLen)
		clock := Op{Nr: unix.SYS_CLOCK_GETTIME, Note: ops[i].Note, nargs: 2, flags: flagAnyErrno, target: b.NewLabel()}
		clock.values[0], clock.kinds[0] = uint64(unix.CLOCK_REALTIME), argInt
		clock.values[1], clock.kinds[1] = at.Arg().value, at.Arg().kind
		b.stampAt[i] = int32(len(stamped)) + 1
		stamped = append(append(stamped, clock), ops[i])
		if o := &stamped[len(stamped)-1]; o.mayFail() {
			stamped = append(stamped, o.keepResult(Cell{at.Plus(stampResult)})...)
		}
	}
	moved[len(ops)] = int32(len(stamped))
	send := &stamped[b.stampAt[n-1]]
	send.values[1], send.kinds[1] = place.Arg().value, place.Arg().kind
	send.values[2] = uint64(stampsHead + n*stampLen)
	old := len(b.labels) - n
	for i, at := range b.labels[:old] {
		if at >= 0 {
			b.labels[i] = moved[at]
		}
	}
	for i, at := range b.stampAt {
		b.labels[old+i] = at
	}
	return stamped
}

// mayFail reports whether the Program goes on where the call fails, and nothing is made of the
// errno.
func (o *Op) mayFail() bool {
	return o.target != 0 && o.Nr != Set && o.flags&flagKeepErrno == 0
}

// keepResult lets the op store its result, or its errno, in a cell. Where the result belongs
// elsewhere it is stored there by the op that is returned: an errno would overwrite what is there.
func (o *Op) keepResult(cell Cell) []Op {
	out := o.out
	o.out = cell.addr
	o.flags |= flagKeepErrno
	if out.off == 0 {
		return nil
	}
	value := cell.Value()
	pass := Op{Nr: Set, Note: o.Note, nargs: 1, out: out}
	pass.values[0], pass.kinds[0] = value.value, value.kind
	return []Op{pass}
}

// StampsLen is the size of the message with the stamps, 0 where there are none.
func (p *Program) StampsLen() int {
	if len(p.stamps) == 0 {
		return 0
	}
	return stampsHead + len(p.stamps)*stampLen
}

// A Stamp is when an op was made: an op that was made several times has that of the
// last one.
type Stamp struct {
	Op   *Op
	When time.Time
	// Tolerated is the errno of a call that failed, where the Program went on regardless.
	Tolerated unix.Errno
}

// ParseStamps reads the message with the stamps, in the order of time; it says no to
// anything else. Ops that were passed over are left out.
func (p *Program) ParseStamps(record []byte) ([]Stamp, bool) {
	le := binary.LittleEndian
	n := len(p.stamps)
	if n == 0 || len(record) != p.StampsLen() || le.Uint32(record) != stampsMagic || le.Uint32(record[4:]) != uint32(n) {
		return nil, false
	}
	stamps := make([]Stamp, 0, n)
	for i, op := range p.stamps {
		at := record[stampsHead+i*stampLen:]
		if seconds, nano := int64(le.Uint64(at)), int64(le.Uint64(at[8:])); seconds != 0 {
			s := Stamp{Op: &p.Ops[op], When: time.Unix(seconds, nano)}
			if result := int64(le.Uint64(at[stampResult:])); result < 0 && result >= -maxErrno {
				s.Tolerated = unix.Errno(-result)
			}
			if s.Op.flags&flagZeroFails != 0 && s.Tolerated == unix.EPIPE {
				s.Tolerated = 0 // it stands for a result of zero
			}
			stamps = append(stamps, s)
		}
	}
	slices.SortStableFunc(stamps, func(a, b Stamp) int { return a.When.Compare(b.When) })
	return stamps, true
}
