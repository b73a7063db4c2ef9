package ttrpc

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// Keep has connections and calls written into the keeper's memory. It must be called before Serve
// and TakeOver.
func (s *Server) Keep(m *keeper.Memory) { s.memory = m }

// kept is what is read from a connection, in the keeper's memory: a killed shim loses none of it.
type kept struct {
	slot   *keeper.Slot
	file   *os.File
	room   []byte
	count  *sys.Counted // of what has been read into the room
	memory *keeper.Memory
}

// The room of a connection: its descriptor, the greatest stream, how much of what was read is done
// with, the count, and what was read.
const (
	offFD, offLast, offDone = 0, 4, 8
	offCount                = 64
	offData                 = offCount + sys.CountedSize
	firstRoom               = 4096 - offData - 64 // one page with what package keeper has before it
)

func newKept(m *keeper.Memory, file *os.File, last uint32, in []byte, slot *keeper.Slot) (*kept, error) {
	k := &kept{slot: slot, file: file, memory: m}
	return k, k.move(last, in)
}

// move has another room, that begins with what is still to be understood.
func (k *kept) move(last uint32, in []byte) error {
	fd := fds.New().Number(k.file)
	k.memory.Holds(fd)
	room, err := k.slot.Room(keeper.Connection, offData+max(firstRoom, 2*len(in)+readSize), func(b []byte) {
		*sys.Word(b[offFD:]), *sys.Word(b[offLast:]) = fd, last
		sys.CountedAt(b[offCount:]).Reset(len(in))
		copy(b[offData:], in)
	})
	if err != nil {
		return err
	}
	k.room, k.count = room, sys.CountedAt(room[offCount:])
	return nil
}

// fill reads more than buf, which is at the end of what was read, and gives both.
func (k *kept) fill(buf []byte, want int) ([]byte, error) {
	data := k.room[offData:]
	total := k.count.Total()
	switch {
	case len(buf) == 0:
		k.count.Reset(0)
		*sys.Word(k.room[offDone:]) = 0
		total = 0
	case len(data)-total < want:
		if err := k.move(*sys.Word(k.room[offLast:]), buf); err != nil {
			return buf, err
		}
		data, total = k.room[offData:], len(buf)
	default:
		*sys.Word(k.room[offDone:]) = uint32(total - len(buf))
	}
	raw, err := k.file.SyscallConn()
	if err != nil {
		return buf, err
	}
	n, readErr := 0, error(nil)
	err = raw.Read(func(fd uintptr) bool {
		n, readErr = k.count.Receive(fd, data[total:])
		return readErr != unix.EAGAIN
	})
	if err == nil {
		err = readErr
	}
	if err == nil && n == 0 {
		err = io.EOF
	}
	return data[total-len(buf) : total+n], err
}

// note keeps a call that has been read.
func (k *kept) note(c *call) {
	c.slot = k.memory.Slot()
	c.slot.Put(keeper.Call, wire.Marshal(c.kept(k.slot, nil)))
	*sys.Word(k.room[offLast:]) = c.stream
}

// kept is a call as it is kept, until its answer has been sent.
func (c *call) kept(conn *keeper.Slot, answer []byte) *wire.KeptCall {
	m := &wire.KeptCall{Conn: conn.Number(), Call: &wire.HandoverCall{Stream: c.stream, Service: c.service, Method: c.method}, Answer: answer}
	if answer == nil {
		m.Call.Payload = c.payload
	}
	if !c.until.IsZero() {
		m.Until = wire.Time(c.until)
	}
	return m
}

// Inherit makes the server one whose process was killed: see TakeOver.
func (s *Server) Inherit(listener uint32, t *fds.Table) error {
	h := &wire.HandoverServer{Listener: listener}
	conns := make(map[uint32]*wire.HandoverConn)
	for _, p := range s.memory.Pieces(keeper.Connection) {
		room := p.InPlace()
		count := sys.CountedAt(room[offCount:])
		count.Recover()
		done := min(int(*sys.Word(room[offDone:])), count.Total())
		one := &wire.HandoverConn{
			FD: *sys.Word(room[offFD:]), Last: *sys.Word(room[offLast:]),
			In: append([]byte{}, room[offData+done:offData+count.Total()]...), Slot: p.Number(),
		}
		conns[p.Number()] = one
		h.Conns = append(h.Conns, one)
	}
	for _, p := range s.memory.Pieces(keeper.Call) {
		var k wire.KeptCall
		if wire.Unmarshal(p.Data, &k) != nil || conns[k.Conn] == nil {
			p.Drop()
			continue
		}
		conn := conns[k.Conn]
		conn.Last = max(conn.Last, k.Call.Stream)
		if len(k.Answer) > 0 {
			// It may have been sent. Clients drop what they do not wait for.
			conn.Out = append(conn.Out, k.Answer...)
			p.Drop()
			continue
		}
		if k.Until != nil {
			k.Call.Left = left(k.Until.Time())
		}
		k.Call.Slot = p.Number()
		conn.Calls = append(conn.Calls, k.Call)
	}
	return s.TakeOver(h, t)
}
