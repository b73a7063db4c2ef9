package ttrpc

import (
	"cmp"
	"io"
	"slices"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// keptStream is what of a stream is in the keeper's memory. The stream's lock guards it.
type keptStream struct {
	slot     *keeper.Slot // nil without a keeper
	state    []byte       // the handler's
	position uint64       // up to where it has what has come on its connection
	queue    []*wire.KeptMessages
	received bool           // the first in the queue has been received, and is not done with
	own      []*keeper.Slot // the handler's
}

// together is up to how many bytes messages have a slot together. A client may send what it is
// allowed to byte by byte, and there are only so many slots.
const together = 16 << 10

// keep notes a stream that has been opened by a request, the last that was read.
func (s *Stream) keep() {
	c := s.conn
	if c.kept == nil {
		return
	}
	s.kept.slot, s.kept.position = c.server.memory.Slot(), c.in.position()
	c.server.memory.Commit(s.change())
}

// inherit has a stream be what the shim before has kept of it.
func (s *Stream) inherit(h *wire.HandoverStream) {
	memory := s.conn.server.memory
	if s.kept.slot = memory.At(h.Slot); s.kept.slot == nil {
		return
	}
	s.kept.state, s.kept.position, s.kept.queue = h.State, h.Position, h.Kept
	for _, k := range h.Kept {
		for _, m := range k.Messages {
			s.queue = append(s.queue, m.Data)
			s.queued += len(m.Data)
		}
	}
}

// Memory is where the stream is kept, nil if it is not.
func (s *Stream) Memory() *keeper.Memory {
	if s.kept.slot == nil {
		return nil
	}
	return s.conn.server.memory
}

// Number is that of its slot.
func (s *Stream) Number() uint32 { return s.kept.slot.Number() }

// Own has something of the handler's dropped with the stream.
func (s *Stream) Own(slot *keeper.Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.own = append(s.kept.own, slot)
}

// Keep notes the state of the handler, which has done with what it has received. Other changes are
// made at the same instant.
func (s *Stream) Keep(state []byte, with ...keeper.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept.slot != nil {
		s.kept.state = state
		with = append(with, s.change())
		if s.kept.received && len(s.kept.queue) > 0 {
			with = append(with, s.unqueueKept())
		}
	}
	s.kept.received = false
	s.conn.server.memory.Commit(with...)
}

// change is what is kept of the stream itself. The lock must be held from here to the commit, as
// for all that follows.
func (s *Stream) change() keeper.Change {
	k := &s.kept
	if k.slot == nil {
		return keeper.Change{}
	}
	return keeper.Change{Slot: k.slot, Kind: keeper.Socket, Data: wire.Marshal(&wire.KeptSocket{
		Conn: s.conn.kept.slot.Number(), Stream: s.id, Method: s.method, Position: k.position,
		Ended: s.err == io.EOF, Broken: s.err == errTooMuch, State: k.state,
	})}
}

// queueKept keeps a message, behind the others.
func (s *Stream) queueKept(body []byte) keeper.Change {
	k := &s.kept
	if k.slot == nil {
		return keeper.Change{}
	}
	var last *wire.KeptMessages
	if n := len(k.queue); n > 0 {
		last = k.queue[n-1]
	}
	if last == nil || last.Size >= together {
		last = &wire.KeptMessages{Of: k.slot.Number(), Slot: s.conn.server.memory.Slot().Number()}
		k.queue = append(k.queue, last)
	}
	last.Messages, last.Position = append(last.Messages, &wire.Data{Data: body}), k.position
	return s.messages(last)
}

// unqueueKept keeps the first message no more.
func (s *Stream) unqueueKept() keeper.Change {
	first := s.kept.queue[0]
	first.Messages = first.Messages[1:]
	if len(first.Messages) == 0 {
		s.kept.queue = s.kept.queue[1:]
	}
	return s.messages(first)
}

func (s *Stream) messages(m *wire.KeptMessages) keeper.Change {
	slot := s.conn.server.memory.At(m.Slot)
	if slot == nil || len(m.Messages) == 0 {
		return keeper.Change{Slot: slot}
	}
	data := wire.Marshal(m)
	m.Size = len(data)
	return keeper.Change{Slot: slot, Kind: keeper.Message, Data: data}
}

// dropKept keeps no message any more.
func (s *Stream) dropKept() (changes []keeper.Change) {
	for _, m := range s.kept.queue {
		changes = append(changes, keeper.Change{Slot: s.conn.server.memory.At(m.Slot)})
	}
	s.kept.queue = nil
	return changes
}

// ended is the change by which nothing is kept, when the stream has been served.
func (s *Stream) ended() []keeper.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = io.EOF // nothing is queued any more
	}
	changes := append(s.dropKept(), keeper.Change{Slot: s.kept.slot})
	for _, slot := range s.kept.own {
		changes = append(changes, keeper.Change{Slot: slot})
	}
	s.kept.slot = nil
	return changes
}

// inheritStreams finds those of connections, by the slots of these.
func (s *Server) inheritStreams(conns map[uint32]*wire.HandoverConn) {
	streams := make(map[uint32]*wire.HandoverStream)
	for _, p := range s.memory.Pieces(keeper.Socket) {
		var k wire.KeptSocket
		if wire.Unmarshal(p.Data, &k) != nil || conns[k.Conn] == nil {
			continue
		}
		conn := conns[k.Conn]
		h := &wire.HandoverStream{
			Stream: k.Stream, Method: k.Method, Ended: k.Ended, Broken: k.Broken, State: k.State, Slot: p.Number(), Position: k.Position,
		}
		streams[h.Slot] = h
		conn.Streams = append(conn.Streams, h)
		conn.Last = max(conn.Last, k.Stream)
	}
	for _, p := range s.memory.Pieces(keeper.Message) {
		k := new(wire.KeptMessages)
		if wire.Unmarshal(p.Data, k) != nil || streams[k.Of] == nil {
			p.Drop()
			continue
		}
		k.Slot, k.Size = p.Number(), len(p.Data)
		h := streams[k.Of]
		h.Kept = append(h.Kept, k)
		h.Position = max(h.Position, k.Position)
	}
	for _, h := range streams {
		slices.SortFunc(h.Kept, func(a, b *wire.KeptMessages) int { return cmp.Compare(a.Position, b.Position) })
	}
}
