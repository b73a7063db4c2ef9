package program

import (
	"encoding/binary"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A stamped Program tells when it made each call. It is the same list with a
// clock_gettime in front of each op, so the interpreter knows nothing about it, and a
// Program that is not stamped is what it always was.
//
// The clock is that of the day: it alone means the same in each time namespace
// (time_namespaces(7)), and who starts the Program has the other times by it.

// stampsMagic begins the record of the stamps, so that it is taken for nothing else.
const stampsMagic = 0x42725374

// The record: magic and number of stamps as words of 32 bits, eight bytes of nothing,
// then a timespec of two 64-bit words each.
const (
	stampsHead = 16
	stampLen   = 16
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
	stamped := make([]Op, 0, len(ops)+n)
	moved := make([]int32, len(ops)+1)
	for i := range ops {
		moved[i] = int32(len(stamped))
		if i < n {
			at := place.Plus(stampsHead + i*stampLen).Arg()
			clock := Op{Nr: unix.SYS_CLOCK_GETTIME, Note: ops[i].Note, nargs: 2, flags: flagAnyErrno, target: b.NewLabel()}
			clock.values[0], clock.kinds[0] = uint64(unix.CLOCK_REALTIME), argInt
			clock.values[1], clock.kinds[1] = at.value, at.kind
			stamped = append(stamped, clock)
		}
		stamped = append(stamped, ops[i])
	}
	moved[len(ops)] = int32(len(stamped))
	send := &stamped[moved[n-1]+1]
	send.values[1], send.kinds[1] = place.Arg().value, place.Arg().kind
	send.values[2] = uint64(stampsHead + n*stampLen)
	old := len(b.labels) - n
	for i, at := range b.labels[:old] {
		if at >= 0 {
			b.labels[i] = moved[at]
		}
	}
	for i := range n {
		b.labels[old+i] = moved[i] + 1
	}
	return stamped
}

// StampsLen is the size of the message with the stamps, 0 where there are none.
func (p *Program) StampsLen() int {
	if p.stamped == 0 {
		return 0
	}
	return stampsHead + p.stamped*stampLen
}

// A Stamp is when an op was made: an op that was made several times has that of the
// last one.
type Stamp struct {
	Op   *Op
	When time.Time
}

// ParseStamps reads the message with the stamps, in the order of time; it says no to
// anything else. Ops that were passed over are left out.
func (p *Program) ParseStamps(record []byte) ([]Stamp, bool) {
	le := binary.LittleEndian
	if p.stamped == 0 || len(record) != p.StampsLen() || le.Uint32(record) != stampsMagic || le.Uint32(record[4:]) != uint32(p.stamped) {
		return nil, false
	}
	stamps := make([]Stamp, 0, p.stamped)
	for i := range p.stamped {
		at := record[stampsHead+i*stampLen:]
		if seconds, nano := int64(le.Uint64(at)), int64(le.Uint64(at[8:])); seconds != 0 {
			stamps = append(stamps, Stamp{&p.Ops[2*i+1], time.Unix(seconds, nano)})
		}
	}
	slices.SortStableFunc(stamps, func(a, b Stamp) int { return a.When.Compare(b.When) })
	return stamps, true
}
