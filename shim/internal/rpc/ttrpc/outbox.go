package ttrpc

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/shim/keeper"
)

// outbox is what is to be written to a connection, in the keeper's memory: the shim that comes
// after one that was killed goes on at the byte where that has left off. It is not safe for use by
// several goroutines.
type outbox struct {
	kind   byte
	slot   *keeper.Slot
	memory *keeper.Memory
	// owner is the slot of the connection's inbox.
	owner uint32
	count *sys.Counted // nil before the first put
	data  []byte
}

// The room of an outbox: its owner, the stream and what it is about, which are the writer's; the
// count of what has been written, and what is to be.
const (
	offOwner, offStream, offMark = 0, 4, 8
	offSent                      = 64
	offFrame                     = offSent + sys.CountedSize
)

func newOutbox(m *keeper.Memory, kind byte, owner *keeper.Slot) *outbox {
	return &outbox{kind: kind, slot: m.Slot(), memory: m, owner: owner.Number()}
}

// inheritOutbox is one that a shim which was killed has left.
func inheritOutbox(m *keeper.Memory, kind byte, number uint32) (*outbox, error) {
	o := &outbox{kind: kind, slot: m.At(number), memory: m}
	if err := o.open(); err != nil {
		return nil, err
	}
	o.count.Recover()
	return o, nil
}

func outboxOwner(p keeper.Piece) uint32 { return *sys.Word(p.InPlace()[offOwner:]) }

func (o *outbox) open() error {
	room, err := o.slot.InPlace()
	if err != nil {
		return err
	}
	o.owner, o.count, o.data = *sys.Word(room[offOwner:]), sys.CountedAt(room[offSent:]), room[offFrame:]
	return nil
}

// rest is what is still to be written.
func (o *outbox) rest() []byte {
	if o.count == nil {
		return nil
	}
	return o.data[o.count.Total():]
}

// about is what put has last said that it is about.
func (o *outbox) about() (stream uint32, mark uint64) {
	room, err := o.slot.InPlace()
	if err != nil {
		return 0, 0
	}
	return *sys.Word(room[offStream:]), *sys.LongWord(room[offMark:])
}

// put adds a frame at the instant that changes are made.
func (o *outbox) put(frame []byte, stream uint32, mark uint64, with ...keeper.Change) error {
	rest := o.rest()
	b := make([]byte, offFrame, offFrame+len(rest)+len(frame))
	*sys.Word(b[offOwner:]), *sys.Word(b[offStream:]), *sys.LongWord(b[offMark:]) = o.owner, stream, mark
	b = append(append(b, rest...), frame...)
	o.memory.Commit(append(with, keeper.Change{Slot: o.slot, Kind: o.kind, Data: b, Room: true})...)
	return o.open()
}

// flush writes what is to be written, until a deadline.
func (o *outbox) flush(file *os.File) error {
	if len(o.rest()) == 0 {
		return nil
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	err = raw.Write(func(fd uintptr) bool {
		for len(o.rest()) > 0 && sendErr == nil {
			_, sendErr = o.count.Send(fd, o.rest())
		}
		if sendErr == unix.EAGAIN {
			sendErr = nil
			return false
		}
		return true
	})
	if err == nil {
		err = sendErr
	}
	return err
}

// clear has nothing to be written: the peer is gone.
func (o *outbox) clear() {
	if o.count != nil {
		o.count.Reset(len(o.data))
	}
}
