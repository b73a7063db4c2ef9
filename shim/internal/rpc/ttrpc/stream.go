package ttrpc

import (
	"context"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/guard"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// StreamHandler serves one call that is a stream in both directions. It ends when
// the handler returns, and the context when the connection is gone.
type StreamHandler func(ctx context.Context, s *Stream) error

// queueLimit is the most that a peer may send ahead of a handler that does not
// read. Those with manners are told how much they may send, which is far less.
const queueLimit = 1 << 20

// Stream is a call whose peers both send messages until one of them is done.
type Stream struct {
	conn *serverConn
	id   uint32

	mu     sync.Mutex
	more   sync.Cond // signalled when the queue changes, or its end comes
	queue  [][]byte
	queued int
	err    error // what Recv gives when the queue is empty
}

func newStream(conn *serverConn, id uint32) *Stream {
	s := &Stream{conn: conn, id: id}
	s.more.L = &s.mu
	return s
}

// Go runs f, which serves the stream, beside its handler. A panic in it is the end of
// no more than that.
func (s *Stream) Go(f func()) {
	go func() {
		_ = guard.Do(s.conn.server.log, func() error {
			f()
			return nil
		})
	}()
}

// Recv waits for the next message. The error is io.EOF when the peer will send
// no more.
func (s *Stream) Recv(m wire.Message) error {
	s.mu.Lock()
	for len(s.queue) == 0 && s.err == nil {
		s.more.Wait()
	}
	if len(s.queue) == 0 {
		defer s.mu.Unlock()
		return s.err
	}
	body := s.queue[0]
	s.queue = s.queue[1:]
	s.queued -= len(body)
	s.mu.Unlock()
	return wire.Unmarshal(body, m)
}

// Send sends a message.
func (s *Stream) Send(m wire.Message) error {
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
	return s.conn.send(b)
}

// Close ends the receiving with an error, for the handler's own side.
func (s *Stream) Close(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.more.Broadcast()
}

// put queues what has come for the handler.
func (s *Stream) put(h header, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	if h.flags&flagNoData == 0 {
		s.queue = append(s.queue, body)
		s.queued += len(body)
	}
	switch {
	case s.queued > queueLimit:
		s.queue, s.err = nil, &Error{Code: ResourceExhausted, Text: "more was sent than is taken"}
	case h.flags&flagRemoteClosed != 0:
		s.err = io.EOF
	}
	s.more.Broadcast()
}
