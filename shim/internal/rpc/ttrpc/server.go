package ttrpc

import (
	"bufio"
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
)

// Handler answers one call. The context ends with the caller's timeout, and
// when its connection is gone.
type Handler func(ctx context.Context, payload []byte) (wire.Message, error)

// Server answers calls by the handlers that were registered.
type Server struct {
	services map[string]map[string]Handler
	streams  map[string]StreamHandler // by service and method, with a slash between
	// log is told of what no caller can be told.
	log func(text string)

	mu       sync.Mutex
	listener *os.File
	conns    map[*serverConn]struct{}
	closed   bool
	onCall   func()
	// answering counts the calls that are under way, and connected the connections.
	answering sync.WaitGroup
	connected sync.WaitGroup
	done      chan struct{} // closed at the end of Close
}

// NewServer makes a server; log is told of connections that were refused or broke.
func NewServer(log func(text string)) *Server {
	return &Server{
		services: make(map[string]map[string]Handler),
		streams:  make(map[string]StreamHandler),
		log:      log,
		conns:    make(map[*serverConn]struct{}),
		done:     make(chan struct{}),
	}
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
		conn, err := Accept(listener)
		switch {
		case err != nil && s.isClosed():
			<-s.done
			return nil
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM):
			// The connection stays in the queue and so the socket stays readable: there
			// is nothing to wait for but time.
			s.log("accept: " + err.Error())
			time.Sleep(50 * time.Millisecond)
			continue
		case err != nil:
			return fmt.Errorf("accept on %s: %w", listener.Name(), err)
		}
		if err := SamePeer(conn); err != nil {
			s.log("connection refused: " + err.Error())
			conn.Close()
			continue
		}
		s.start(conn)
	}
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
	write  sync.Mutex

	mu      sync.Mutex
	streams map[uint32]*Stream // that are open
}

func (s *Server) start(file *os.File) {
	c := &serverConn{server: s, file: file, streams: make(map[uint32]*Stream)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		file.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.connected.Add(1)
	go func() {
		defer s.connected.Done()
		if err := guard.Do(s.log, c.serve); err != nil {
			s.log("connection lost: " + err.Error())
		}
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		file.Close()
	}()
}

// serve reads requests until the peer closes the connection.
func (c *serverConn) serve() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer c.endStreams()
	in := bufio.NewReaderSize(c.file, 1024)
	var last uint32
	for {
		h, body, err := readFrame(in)
		var oversized errOversized
		switch {
		case errors.As(err, &oversized):
			c.refuse(h.stream, ResourceExhausted, oversized.Error())
			continue
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
				stream.put(h, body)
			}
			continue
		}
		if h.kind != typeRequest {
			continue // something of a later protocol
		}
		if h.stream%2 != 1 || h.stream <= last {
			c.refuse(h.stream, InvalidArgument, "stream id must be odd and greater than any before it")
			continue
		}
		last = h.stream
		req := new(wire.Request)
		if err := wire.Unmarshal(body, req); err != nil {
			c.refuse(h.stream, InvalidArgument, "read the request: "+err.Error())
			continue
		}
		if h.flags&flagRemoteOpen != 0 {
			c.openStream(ctx, h.stream, req)
			continue
		}
		c.server.answering.Add(1)
		go func() {
			defer c.server.answering.Done()
			c.handle(ctx, h.stream, req)
		}()
	}
}

// openStream has a stream served. Its data may come right behind the request; so
// it is known before this returns.
func (c *serverConn) openStream(ctx context.Context, id uint32, req *wire.Request) {
	serve, known := c.server.streams[req.Service+"/"+req.Method]
	if !known {
		c.refuse(id, Unimplemented, "stream "+req.Method+" of "+req.Service+" is not implemented")
		return
	}
	s := newStream(c, id)
	c.mu.Lock()
	c.streams[id] = s
	c.mu.Unlock()
	go func() {
		err := guard.Do(c.server.log, func() error { return serve(ctx, s) })
		c.mu.Lock()
		delete(c.streams, id)
		c.mu.Unlock()
		if err != nil {
			c.refuse(id, CodeOf(err), err.Error())
			return
		}
		if b, err := frame(id, typeData, flagRemoteClosed|flagNoData, &wire.Empty{}); err == nil {
			c.send(b)
		}
	}()
}

// endStreams tells the handlers that the peer is gone.
func (c *serverConn) endStreams() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.streams {
		s.Close(unix.ECONNRESET)
	}
}

func (c *serverConn) handle(ctx context.Context, stream uint32, req *wire.Request) {
	if c.server.onCall != nil {
		c.server.onCall()
	}
	if req.TimeoutNano != 0 { // below 0 where the client's time was over when it sent
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(req.TimeoutNano))
		defer cancel()
	}
	methods, known := c.server.services[req.Service]
	if !known {
		c.refuse(stream, Unimplemented, "service "+req.Service+" is not implemented")
		return
	}
	h, known := methods[req.Method]
	if !known {
		c.refuse(stream, Unimplemented, "method "+req.Method+" of "+req.Service+" is not implemented")
		return
	}
	var answer []byte
	err := guard.Do(c.server.log, func() error {
		message, err := h(ctx, req.Payload)
		if err == nil {
			answer = wire.Marshal(message)
		}
		return err
	})
	if err != nil {
		c.refuse(stream, CodeOf(err), err.Error())
		return
	}
	c.answer(stream, &wire.Response{Status: &wire.Status{}, Payload: answer})
}

func (c *serverConn) refuse(stream uint32, code Code, text string) {
	c.answer(stream, &wire.Response{Status: &wire.Status{Code: int32(code), Message: text}})
}

func (c *serverConn) answer(stream uint32, r *wire.Response) {
	b, err := frame(stream, typeResponse, 0, r)
	if err != nil {
		c.refuse(stream, ResourceExhausted, "answer: "+err.Error())
		return
	}
	// A failed write means that the peer is gone, which the reader sees too.
	c.send(b)
}

func (c *serverConn) send(b []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	_, err := c.file.Write(b)
	return err
}
