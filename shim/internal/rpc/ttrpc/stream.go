package ttrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/guard"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// StreamHandler serves calls that are streams in both directions.
type StreamHandler interface {
	// Serve serves one until it returns. The context ends when the connection is gone. When the
	// server is suspended, Serve and what it has begun by Go return, with ErrSuspended; it is
	// called again for the stream after Resume, or by the program that comes after this one.
	Serve(ctx context.Context, s *Stream) error
	// Halt tells it that the server is being suspended, besides what Recv and Halted do.
	Halt(s *Stream)
	// Handover writes down where Serve is, for TakeOver.
	Handover(s *Stream, t *fds.Table) []byte
	TakeOver(s *Stream, state []byte, t *fds.Table) error
}

// queueLimit is the most that a peer may send ahead of a handler that does not
// read. Those with manners are told how much they may send, which is far less.
const queueLimit = 1 << 20

// Stream is a call whose peers both send messages until one of them is done.
type Stream struct {
	conn    *serverConn
	id      uint32
	method  string
	handler StreamHandler
	others  sync.WaitGroup // what Go has begun

	mu     sync.Mutex
	more   sync.Cond // signalled when the queue changes, or its end comes
	queue  [][]byte
	queued int
	err    error         // what Recv gives when the queue is empty
	halted chan struct{} // closed while the server is suspended
	kept   keptStream
}

func (c *serverConn) newStream(id uint32, method string, h StreamHandler) *Stream {
	s := &Stream{conn: c, id: id, method: method, handler: h, halted: make(chan struct{})}
	s.more.L = &s.mu
	return s
}

// Go runs f, which serves the stream, beside its handler. A panic in it is the end of
// no more than that.
func (s *Stream) Go(f func()) {
	s.others.Add(1)
	go func() {
		defer s.others.Done()
		_ = guard.Do(s.conn.server.log, func() error {
			f()
			return nil
		})
	}()
}

// Recv waits for the next message. The error is io.EOF when the peer will send no more. With a
// keeper, a message is received again by the next shim, until Keep says that it is done with.
func (s *Stream) Recv(m wire.Message) error {
	s.mu.Lock()
	for len(s.queue) == 0 && s.err == nil && !s.isHalted() {
		s.more.Wait()
	}
	if s.isHalted() {
		defer s.mu.Unlock()
		return ErrSuspended
	}
	if len(s.queue) == 0 {
		defer s.mu.Unlock()
		return s.err
	}
	body := s.queue[0]
	s.queue = s.queue[1:]
	s.kept.received = true
	s.queued -= len(body)
	s.mu.Unlock()
	return wire.Unmarshal(body, m)
}

// Send sends a message. With a keeper, it is on its way at the instant that changes are made; with
// an error they may not have been.
func (s *Stream) Send(m wire.Message, with ...keeper.Change) error {
	s.mu.Lock()
	gone := s.err != nil && s.err != io.EOF
	s.mu.Unlock()
	if gone {
		return fmt.Errorf("send on a stream: %w", unix.EPIPE)
	}
	b, err := frame(s.id, typeData, 0, m)
	if err != nil {
		return err
	}
	return s.conn.send(b, with...)
}

// Close ends the receiving with an error, for the handler's own side. With a keeper, io.EOF ends it
// for the next shim, too.
func (s *Stream) Close(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		if err == io.EOF {
			s.conn.server.memory.Commit(s.change())
		}
	}
	s.more.Broadcast()
}

// put queues what has come for the handler, up to a position in all that has come on the
// connection.
func (s *Stream) put(h header, body []byte, position uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || s.kept.slot != nil && position <= s.kept.position {
		return // the latter has been queued by the shim before
	}
	s.kept.position = position
	var changes []keeper.Change
	if h.flags&flagNoData == 0 {
		s.queue = append(s.queue, body)
		s.queued += len(body)
		changes = append(changes, s.queueKept(body))
	}
	switch {
	case s.queued > queueLimit:
		s.queue, s.err = nil, errTooMuch
		changes = append(s.dropKept(), s.change())
	case h.flags&flagRemoteClosed != 0:
		s.err = io.EOF
		changes = append(changes, s.change())
	}
	s.conn.server.memory.Commit(changes...)
	s.more.Broadcast()
}

var errTooMuch = &Error{Code: ResourceExhausted, Text: "more was sent than is taken"}

// Halted is closed while the server is suspended. It is another channel after each Resume.
func (s *Stream) Halted() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.halted
}

func (s *Stream) isHalted() bool {
	select {
	case <-s.halted:
		return true
	default:
		return false
	}
}

// halt has the handler return soon.
func (s *Stream) halt() {
	s.mu.Lock()
	if !s.isHalted() {
		close(s.halted)
	}
	s.more.Broadcast()
	s.mu.Unlock()
	s.handler.Halt(s)
}

// serve has the stream served to its end, also over what it is suspended for.
func (s *Stream) serve() {
	c, server := s.conn, s.conn.server
	var err error
	for {
		server.mu.Lock()
		for server.suspended {
			server.quiet.Wait()
		}
		server.moving++
		s.mu.Lock()
		if s.isHalted() {
			s.halted = make(chan struct{})
		}
		s.mu.Unlock()
		server.mu.Unlock()
		err = guard.Do(server.log, func() error { return s.handler.Serve(c.ctx, s) })
		s.others.Wait()
		if !errors.Is(err, ErrSuspended) {
			break
		}
		server.rests()
	}
	c.mu.Lock()
	delete(c.streams, s.id)
	c.mu.Unlock()
	end, frameErr := frame(s.id, typeData, flagRemoteClosed|flagNoData, &wire.Empty{})
	if err = errors.Join(err, frameErr); err != nil {
		end = response(s.id, refusal(CodeOf(err), err.Error()))
	}
	c.send(end, s.ended()...) // a failed write means that the peer is gone
	c.under.Done()
	server.rests()
}

// rests notes that a stream is not served any more, or for now.
func (s *Server) rests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moving--
	s.quiet.Broadcast()
}

// handover writes a halted stream down.
func (s *Stream) handover(t *fds.Table) *wire.HandoverStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &wire.HandoverStream{Stream: s.id, Method: s.method, Ended: s.err == io.EOF, Broken: s.err != nil && s.err != io.EOF, State: s.handler.Handover(s, t)}
	for _, body := range s.queue {
		h.Queue = append(h.Queue, &wire.Data{Data: body})
	}
	return h
}

// takeOver makes a stream that handover has written down.
func (c *serverConn) takeOver(h *wire.HandoverStream, t *fds.Table) error {
	handler, known := c.server.streams[h.Method]
	if !known {
		return fmt.Errorf("stream %s in the state is not implemented", h.Method)
	}
	s := c.newStream(h.Stream, h.Method, handler)
	s.inherit(h)
	for _, m := range h.Queue {
		s.queue = append(s.queue, m.Data)
		s.queued += len(m.Data)
	}
	switch {
	case h.Broken:
		s.err = errTooMuch
	case h.Ended:
		s.err = io.EOF
	case c.file == nil:
		s.err = unix.ECONNRESET
	}
	if err := handler.TakeOver(s, h.State, t); err != nil {
		return err
	}
	c.streams[s.id] = s
	c.under.Add(1)
	go s.serve()
	return nil
}
