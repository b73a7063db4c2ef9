package ttrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/guard"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// Handler answers one call. The context ends with the caller's timeout, and
// when its connection is gone.
type Handler func(ctx context.Context, payload []byte) (wire.Message, error)

// Server answers calls by the handlers that were registered.
type Server struct {
	services map[string]map[string]Handler
	streams  map[string]StreamHandler // by service and method, with a slash between
	long     map[string]bool          // calls that Suspend does not wait for, in the same way
	// log is told of what no caller can be told.
	log func(text string)

	mu       sync.Mutex
	listener *os.File
	conns    map[*serverConn]struct{}
	gone     map[*serverConn]struct{} // whose peers are, and of which calls and streams go on
	closed   bool
	onCall   func()
	// answering counts the calls that are under way, and connected the connections.
	answering sync.WaitGroup
	connected sync.WaitGroup
	done      chan struct{} // closed at the end of Close

	suspended bool
	// accepting is held by who accepts connections, and by Suspend until Resume; reading
	// counts the connections that are read from.
	accepting sync.Mutex
	reading   sync.WaitGroup
	calls     map[*call]struct{} // under way
	moving    int                // streams that are served, and not halted

	memory *keeper.Memory
	// Redone, if set, is called when the calls that Resume has begun anew have ended, but for long
	// ones.
	Redone func()
	quiet  sync.Cond // signalled when a call has ended, a stream is halted, and by Resume
}

// NewServer makes a server; log is told of connections that were refused or broke.
func NewServer(log func(text string)) *Server {
	s := &Server{
		services: make(map[string]map[string]Handler),
		streams:  make(map[string]StreamHandler),
		long:     make(map[string]bool),
		log:      log,
		conns:    make(map[*serverConn]struct{}),
		gone:     make(map[*serverConn]struct{}),
		calls:    make(map[*call]struct{}),
		done:     make(chan struct{}),
	}
	s.quiet.L = &s.mu
	return s
}

// Register adds the methods of a service. It must not be called while serving.
func (s *Server) Register(service string, methods map[string]Handler) {
	s.services[service] = methods
}

// RegisterStream adds a method that is a stream. It must not be called while serving.
func (s *Server) RegisterStream(service, method string, h StreamHandler) {
	s.streams[service+"/"+method] = h
}

// OnCall has f called at every call. It must not be called while serving.
func (s *Server) OnCall(f func()) { s.onCall = f }

// Serve accepts connections of a listening socket until Close, and owns it.
func (s *Server) Serve(listener *os.File) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return listener.Close()
	}
	s.listener = listener
	s.mu.Unlock()
	for {
		if ended, err := s.accept(listener); ended {
			return err
		}
	}
}

// accept takes one connection, if there is one before Suspend or Close.
func (s *Server) accept(listener *os.File) (ended bool, err error) {
	s.accepting.Lock()
	defer s.accepting.Unlock()
	conn, err := Accept(listener)
	switch {
	case err != nil && s.isClosed():
		<-s.done
		return true, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return false, nil // Suspend is waiting for its turn
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM):
		// The connection stays in the queue and so the socket stays readable: there
		// is nothing to wait for but time.
		s.log("accept: " + err.Error())
		time.Sleep(50 * time.Millisecond)
		return false, nil
	case err != nil:
		return true, fmt.Errorf("accept on %s: %w", listener.Name(), err)
	}
	s.admit(conn)
	return false, nil
}

// admit serves a connection, if it may be.
func (s *Server) admit(conn *os.File) {
	if err := SamePeer(conn); err != nil {
		s.log("connection refused: " + err.Error())
		conn.Close()
		return
	}
	s.start(conn)
}

// closeGrace is how long Close waits for calls that are under way, and linger
// how long for the peers to go. A client that sees the end of a connection may
// forget the answer that came right before it.
const (
	closeGrace = time.Second
	linger     = 500 * time.Millisecond
)

// Close stops accepting, lets the calls that are under way be answered and the
// peers close their connections, though neither for long, and closes the rest.
// Serve returns after that.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	if s.listener != nil {
		s.listener.Close()
	}
	s.mu.Unlock()
	within(closeGrace, s.answering.Wait)
	within(linger, s.connected.Wait)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.file.Close()
	}
	close(s.done)
}

// within waits until f has returned, or the time is over.
func within(limit time.Duration, f func()) {
	done := make(chan struct{})
	go func() {
		f()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// serverConn is one connection. Answers are written whole, one after the other.
type serverConn struct {
	server *Server
	file   *os.File
	in     *frameReader
	last   uint32 // greatest stream so far
	ctx    context.Context
	cancel context.CancelFunc

	write sync.Mutex
	out   []byte // what Suspend has left to be written, under write

	// kept and keptOut are nil without a keeper; then from is what the shim that was killed has
	// left, until all of that is taken up, and read the stream of a call that it has read already.
	kept    *inbox
	keptOut *outbox
	from    *wire.HandoverConn
	read    uint32
	under   sync.WaitGroup // calls and streams

	mu      sync.Mutex
	streams map[uint32]*Stream // that are open
	waiting []*call            // what Suspend has interrupted
}

func (s *Server) newConn(file *os.File, h *wire.HandoverConn) *serverConn {
	c := &serverConn{server: s, file: file, in: newFrameReader(file), streams: make(map[uint32]*Stream)}
	c.in.buf, c.out, c.last = h.In, h.Out, h.Last
	c.in.skip, c.in.over = h.Skip, header{stream: h.Over, length: h.Length}
	if s.memory != nil {
		if err := c.keep(h); err != nil {
			s.log("keep a connection: " + err.Error())
		}
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (s *Server) start(file *os.File) {
	c := s.newConn(file, &wire.HandoverConn{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		file.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.connected.Add(1)
	if !s.suspended {
		s.read(c)
	}
}

// read has a connection read from, until it ends or Suspend is called. The server's lock must be
// held.
func (s *Server) read(c *serverConn) {
	s.reading.Add(1)
	go func() {
		defer s.reading.Done()
		err := guard.Do(s.log, c.serve)
		if errors.Is(err, ErrSuspended) {
			return
		}
		if err != nil {
			s.log("connection lost: " + err.Error())
		}
		c.cancel()
		c.endStreams()
		s.mu.Lock()
		delete(s.conns, c)
		s.gone[c] = struct{}{}
		s.mu.Unlock()
		if c.kept != nil {
			c.kept.close()
		}
		go c.outlive()
		c.file.Close()
		s.connected.Done()
	}()
}

// outlive forgets a connection whose peer is gone when its calls and streams have ended: until then
// they speak of its slot.
func (c *serverConn) outlive() {
	c.under.Wait()
	s := c.server
	s.mu.Lock()
	delete(s.gone, c)
	s.mu.Unlock()
	if c.kept != nil {
		s.memory.Commit(keeper.Change{Slot: c.kept.slot}, keeper.Change{Slot: c.keptOut.slot})
	}
}

// serve reads requests until the peer closes the connection.
func (c *serverConn) serve() error {
	for {
		h, body, err := c.in.next()
		var oversized errOversized
		switch {
		case errors.As(err, &oversized):
			c.refuse(h.stream, ResourceExhausted, oversized.Error())
			if err := c.in.dropped(); err != nil {
				return err
			}
			continue
		case errors.Is(err, os.ErrDeadlineExceeded): // which only Suspend sets
			return ErrSuspended
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, os.ErrClosed), errors.Is(err, unix.ECONNRESET):
			return nil
		case err != nil:
			return err
		}
		if h.kind == typeData {
			c.mu.Lock()
			stream := c.streams[h.stream]
			c.mu.Unlock()
			if stream != nil { // else it was refused, or has ended
				stream.put(h, body, c.in.position())
			}
			if c.kept != nil {
				c.kept.at(c.last, len(c.in.buf))
			}
			continue
		}
		if h.kind != typeRequest {
			continue // something of a later protocol
		}
		if h.stream == c.read && c.read != 0 {
			c.read = 0
			continue
		}
		if h.stream%2 != 1 || h.stream <= c.last {
			c.refuse(h.stream, InvalidArgument, "stream id must be odd and greater than any before it")
			continue
		}
		c.last = h.stream
		req := new(wire.Request)
		if err := wire.Unmarshal(body, req); err != nil {
			c.refuse(h.stream, InvalidArgument, "read the request: "+err.Error())
			continue
		}
		if h.flags&flagRemoteOpen != 0 {
			c.openStream(h.stream, req)
			continue
		}
		if c.server.onCall != nil {
			c.server.onCall()
		}
		call := &call{conn: c, stream: h.stream, service: req.Service, method: req.Method, payload: req.Payload}
		if req.TimeoutNano != 0 { // below 0 where the client's time was over when it sent
			call.until = time.Now().Add(time.Duration(req.TimeoutNano))
		}
		if c.kept != nil {
			c.kept.note(call, len(c.in.buf))
		}
		call.begin()
	}
}

// openStream has a stream served. Its data may come right behind the request; so
// it is known before this returns.
func (c *serverConn) openStream(id uint32, req *wire.Request) {
	method := req.Service + "/" + req.Method
	handler, known := c.server.streams[method]
	if !known {
		c.refuse(id, Unimplemented, "stream "+req.Method+" of "+req.Service+" is not implemented")
		return
	}
	s := c.newStream(id, method, handler)
	s.keep()
	if c.kept != nil {
		c.kept.at(id, len(c.in.buf))
	}
	c.under.Add(1)
	c.mu.Lock()
	c.streams[id] = s
	c.mu.Unlock()
	go s.serve()
}

// endStreams tells the handlers that the peer is gone.
func (c *serverConn) endStreams() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.streams {
		s.Close(unix.ECONNRESET)
	}
}

func (c *serverConn) refuse(stream uint32, code Code, text string) {
	// A failed write means that the peer is gone, which the reader sees too.
	c.send(response(stream, refusal(code, text)))
}

func refusal(code Code, text string) *wire.Response {
	return &wire.Response{Status: &wire.Status{Code: int32(code), Message: text}}
}

// response is the frame of an answer.
func response(stream uint32, r *wire.Response) []byte {
	b, err := frame(stream, typeResponse, 0, r)
	if err != nil {
		return response(stream, refusal(ResourceExhausted, "answer: "+err.Error()))
	}
	return b
}
