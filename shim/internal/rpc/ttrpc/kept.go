package ttrpc

import (
	"context"
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

// inbox is what is read from a connection, in the keeper's memory: a killed shim loses none of it.
type inbox struct {
	kind   byte
	slot   *keeper.Slot
	file   *os.File
	room   []byte
	count  *sys.Counted // of what has been read into the room
	base   uint64       // bytes that have come before those in the room
	memory *keeper.Memory
}

// The room of an inbox: up to where what was read is done with, and the greatest stream until then,
// in one word; the descriptor; of a message that is longer than allowed its stream, its length and
// how much of it is still to be dropped; how much had come before; the count, and what was read.
const (
	offAt, offFD        = 0, 8
	offOver, offLength  = 12, 16
	offSkip             = 24
	offBase             = 32
	offCount            = 64
	offData             = offCount + sys.CountedSize
	firstRoom           = 4096 - offData - 64 // one page with what package keeper has before it
	mostRoom            = 64 << 10            // that is made for what may come
	lastShift, doneMask = 32, 1<<32 - 1
)

// newInbox makes the inbox of a connection, of which in has been read already, and base before.
func newInbox(m *keeper.Memory, kind byte, file *os.File, last uint32, in *frameReader, slot *keeper.Slot, base uint64) (*inbox, error) {
	k := &inbox{kind: kind, slot: slot, file: file, memory: m, base: base}
	if k.slot == nil {
		k.slot = m.Slot()
	}
	buf := in.buf
	if err := k.move(last, in); err != nil {
		return nil, err
	}
	in.kept, in.buf = k, k.room[offData:][:len(buf)]
	return k, nil
}

// last is the greatest stream so far.
func (k *inbox) last() uint32 { return uint32(*sys.LongWord(k.room[offAt:]) >> lastShift) }

// move has another room, that begins with what is still to be understood.
func (k *inbox) move(last uint32, in *frameReader) error {
	fd := fds.New().Number(k.file)
	k.memory.Holds(fd)
	base := k.base
	if k.count != nil {
		base = k.position(len(in.buf))
	}
	size := max(firstRoom, 2*len(in.buf)+readSize, len(in.buf)+in.want(), min(len(k.room)-offData, mostRoom))
	b := make([]byte, offData+size)
	*sys.LongWord(b[offAt:]), *sys.Word(b[offFD:]) = uint64(last)<<lastShift, fd
	*sys.Word(b[offOver:]), *sys.Word(b[offLength:]), *sys.LongWord(b[offSkip:]) = in.over.stream, in.over.length, in.skip
	*sys.LongWord(b[offBase:]) = base
	sys.CountedAt(b[offCount:]).Reset(len(in.buf))
	copy(b[offData:], in.buf)
	k.memory.Commit(keeper.Change{Slot: k.slot, Kind: k.kind, Data: b, Room: true})
	room, err := k.slot.InPlace()
	if err != nil {
		return err
	}
	k.room, k.count, k.base = room, sys.CountedAt(room[offCount:]), base
	return nil
}

// position is how much has come, but for the last bytes of it.
func (k *inbox) position(without int) uint64 { return k.base + uint64(k.count.Total()-without) }

// fill reads more, behind what is in the buffer, which is the end of what was read.
func (k *inbox) fill(in *frameReader) error {
	data := k.room[offData:]
	total := k.count.Total()
	switch {
	case in.over.length > 0, len(data)-total < in.want():
		if err := k.move(k.last(), in); err != nil {
			return err
		}
		data, total = k.room[offData:], len(in.buf)
	case len(in.buf) == 0:
		k.at(k.last(), 0)
	}
	raw, err := k.file.SyscallConn()
	if err != nil {
		return err
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
	in.buf = data[total-len(in.buf) : total+n]
	return err
}

// at notes that all but left of what was read is done with, and the greatest stream.
func (k *inbox) at(last uint32, left int) {
	*sys.LongWord(k.room[offAt:]) = uint64(last)<<lastShift | uint64(k.count.Total()-left)
}

// close says that the descriptor is about to be another file's, or none.
func (k *inbox) close() { *sys.Word(k.room[offFD:]) = 0 }

// inherited is what a shim that was killed has left in an inbox.
func inherited(p keeper.Piece) *wire.HandoverConn {
	room := p.InPlace()
	count := sys.CountedAt(room[offCount:])
	count.Recover()
	at := *sys.LongWord(room[offAt:])
	done := min(int(at&doneMask), count.Total())
	return &wire.HandoverConn{
		FD: *sys.Word(room[offFD:]), Last: uint32(at >> lastShift), Slot: p.Number(),
		Over: *sys.Word(room[offOver:]), Length: *sys.Word(room[offLength:]), Skip: *sys.LongWord(room[offSkip:]),
		In: append([]byte{}, room[offData+done:offData+count.Total()]...), Position: *sys.LongWord(room[offBase:]) + uint64(done),
	}
}

// note keeps a call that has been read. When it is, the call is read no more.
func (k *inbox) note(c *call, left int) {
	c.slot = k.memory.Slot()
	c.slot.Put(keeper.Call, wire.Marshal(c.kept(nil)))
	k.at(c.stream, left)
}

// kept is a call as it is kept, until its answer is to be sent next.
func (c *call) kept(answer []byte) *wire.KeptCall {
	m := &wire.KeptCall{
		Conn: c.conn.kept.slot.Number(), Call: &wire.HandoverCall{Stream: c.stream, Service: c.service, Method: c.method}, Answer: answer,
	}
	if answer == nil {
		m.Call.Payload = c.payload
	}
	if !c.until.IsZero() {
		m.Until = wire.Time(c.until)
	}
	return m
}

// answered is the change by which a call is answered, though this be the end of the process.
func (c *call) answered(frame []byte) keeper.Change {
	if c.slot == nil || c.conn.kept == nil {
		return keeper.Change{}
	}
	return keeper.Change{Slot: c.slot, Kind: keeper.Call, Data: wire.Marshal(c.kept(frame))}
}

// Answered is the change by which the call of a context is answered, for a handler that makes it in
// one commit with what it has done. The handler then returns the same answer.
func Answered(ctx context.Context, answer wire.Message) keeper.Change {
	c, _ := ctx.Value(underWay{}).(*call)
	if c == nil || c.slot == nil {
		return keeper.Change{}
	}
	return c.answered(response(c.stream, &wire.Response{Status: &wire.Status{}, Payload: wire.Marshal(answer)}))
}

// Inherit makes the server one whose process was killed: see TakeOver.
func (s *Server) Inherit(listener uint32, t *fds.Table) error {
	h := &wire.HandoverServer{Listener: listener}
	conns := make(map[uint32]*wire.HandoverConn)
	for _, p := range s.memory.Pieces(keeper.Connection) {
		one := inherited(p) // of those without a descriptor, too: streams may outlive them
		conns[p.Number()] = one
		h.Conns = append(h.Conns, one)
	}
	s.inheritStreams(conns)
	for _, p := range s.memory.Pieces(keeper.Answers) {
		if conn := conns[outboxOwner(p)]; conn != nil {
			conn.OutSlot = p.Number()
		} else {
			p.Drop()
		}
	}
	answers := make(map[*wire.HandoverConn][]keptAnswer)
	for _, p := range s.memory.Pieces(keeper.Call) {
		var k wire.KeptCall
		if wire.Unmarshal(p.Data, &k) != nil || conns[k.Conn] == nil || conns[k.Conn].FD == 0 {
			p.Drop() // or there is no one to be answered
			continue
		}
		conn := conns[k.Conn]
		conn.Last = max(conn.Last, k.Call.Stream)
		if len(k.Answer) > 0 {
			answers[conn] = append(answers[conn], keptAnswer{p.Slot, k.Answer})
			continue
		}
		if k.Until != nil {
			k.Call.Left = left(k.Until.Time())
		}
		k.Call.Slot = p.Number()
		conn.Calls = append(conn.Calls, k.Call)
	}
	if err := s.TakeOver(h, t); err != nil {
		return err
	}
	for c := range s.conns {
		for _, a := range answers[c.from] {
			c.queue(a.frame, keeper.Change{Slot: a.call})
		}
		c.from = nil
	}
	return nil
}

// Adopt serves a connection that the shim before had accepted, and was killed before it could note
// it: its client has connected, and may have sent a request. It reports false of any other
// descriptor. It must be called between Inherit and Resume.
func (s *Server) Adopt(fd uint32, t *fds.Table) bool {
	own, err := unix.Getsockname(int(t.Number(s.listener)))
	if err != nil {
		return false
	}
	its, err := unix.Getsockname(int(fd))
	if err != nil {
		return false
	}
	listener, ok := own.(*unix.SockaddrUnix)
	accepted, same := its.(*unix.SockaddrUnix)
	if !ok || !same || listener.Name == "" || accepted.Name != listener.Name {
		return false
	}
	conn, err := t.File(fd, "ttrpc connection")
	if err != nil {
		return false
	}
	s.admit(conn)
	return true
}

// keptAnswer is one that a shim that was killed had yet to send.
type keptAnswer struct {
	call  *keeper.Slot
	frame []byte
}
