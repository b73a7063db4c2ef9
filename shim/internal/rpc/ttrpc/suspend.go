package ttrpc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// ErrSuspended is the cause by which the context of a long call ends when the server is suspended.
// A handler that returns it is called again after Resume, or by the program that comes after this
// one; nothing of what it has done may be lost.
var ErrSuspended = errors.New("the shim is taking another program")

// longAgo is a deadline that is over.
var longAgo = time.Unix(1, 0)

// Long says of methods that they may wait for ever, and can be interrupted: see ErrSuspended. It
// must not be called while serving.
func (s *Server) Long(service string, methods ...string) {
	for _, m := range methods {
		s.long[service+"/"+m] = true
	}
}

type resumed struct{}

// Resumed says whether a call has been interrupted before.
func Resumed(ctx context.Context) bool { return ctx.Value(resumed{}) != nil }

// Suspend stops accepting and reading, interrupts long calls, and lets the others be answered. When
// it returns, nothing is under way until Resume; but an error says what did not end in time, and
// all goes on as before.
func (s *Server) Suspend(limit time.Duration) error {
	end := time.Now().Add(limit)
	s.mu.Lock()
	switch {
	case s.closed || s.listener == nil:
		s.mu.Unlock()
		return errors.New("the shim is about to leave")
	case s.suspended:
		s.mu.Unlock()
		return ErrSuspended
	}
	s.suspended = true
	s.listener.SetReadDeadline(longAgo)
	for c := range s.conns {
		c.file.SetReadDeadline(longAgo)
		// What a peer does not take is handed on.
		c.file.SetWriteDeadline(end.Add(-limit / 2))
	}
	s.mu.Unlock()
	s.accepting.Lock()
	s.reading.Wait()

	s.mu.Lock()
	for _, c := range s.all() {
		c.mu.Lock()
		for _, stream := range c.streams {
			stream.halt()
		}
		c.mu.Unlock()
	}
	wake := time.AfterFunc(limit, func() {
		s.mu.Lock()
		s.quiet.Broadcast()
		s.mu.Unlock()
	})
	defer wake.Stop()
	for len(s.calls)+s.moving > 0 && time.Now().Before(end) {
		for c := range s.calls {
			if s.long[c.service+"/"+c.method] {
				c.interrupt(ErrSuspended)
			}
		}
		s.quiet.Wait()
	}
	var busy []string
	for c := range s.calls {
		busy = append(busy, c.method)
	}
	if s.moving > 0 {
		busy = append(busy, fmt.Sprintf("%d streams of input and output over its socket", s.moving))
	}
	s.mu.Unlock()
	if len(busy) > 0 {
		s.Resume()
		slices.Sort(busy)
		return fmt.Errorf("the shim is busy with %s", strings.Join(busy, ", "))
	}
	return nil
}

// all are all connections, also those whose peers are gone. The lock must be held.
func (s *Server) all() []*serverConn {
	return slices.Concat(slices.Collect(maps.Keys(s.conns)), slices.Collect(maps.Keys(s.gone)))
}

// Resume goes on where Suspend has stopped, or where the program before this one has.
func (s *Server) Resume() {
	s.mu.Lock()
	s.suspended = false
	s.quiet.Broadcast()
	s.listener.SetReadDeadline(time.Time{})
	waiting := make([]*call, 0, len(s.conns))
	for c := range s.conns {
		c.file.SetDeadline(time.Time{})
		waiting = append(waiting, c.waiting...)
		c.waiting = nil
		go c.flush()
		s.read(c)
	}
	s.mu.Unlock()
	var redone sync.WaitGroup
	for _, c := range waiting {
		c.again = true
		if !s.long[c.service+"/"+c.method] {
			redone.Add(1)
			c.ended = redone.Done
		}
		c.begin()
	}
	if s.Redone != nil {
		go func(f func()) {
			redone.Wait()
			f()
		}(s.Redone)
		s.Redone = nil
	}
	s.accepting.Unlock()
}

// flush writes what Suspend has left.
func (c *serverConn) flush() {
	c.write.Lock()
	defer c.write.Unlock()
	if c.keptOut != nil {
		_ = c.flushKept() // the reader finds out, too
		return
	}
	if len(c.out) == 0 {
		return
	}
	n, err := c.file.Write(c.out)
	c.out = c.out[n:]
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.out = nil // the peer is gone
	}
}

// Handover writes a suspended server down.
func (s *Server) Handover(t *fds.Table) *wire.HandoverServer {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &wire.HandoverServer{Listener: t.Number(s.listener)}
	for _, c := range s.all() {
		c.write.Lock() // flush may have it, until the deadline
		one := &wire.HandoverConn{
			FD: t.Number(c.file), In: c.in.buf, Out: c.out, Last: c.last,
			Skip: c.in.skip, Over: c.in.over.stream, Length: c.in.over.length,
		}
		c.write.Unlock()
		for _, w := range c.waiting {
			one.Calls = append(one.Calls, &wire.HandoverCall{Stream: w.stream, Service: w.service, Method: w.method, Payload: w.payload, Left: left(w.until)})
		}
		for _, stream := range c.streams {
			one.Streams = append(one.Streams, stream.handover(t))
		}
		h.Conns = append(h.Conns, one)
	}
	return h
}

// left is how many nanoseconds there are until a time: 0 if that is never.
func left(until time.Time) int64 {
	if until.IsZero() {
		return 0
	}
	if d := int64(time.Until(until)); d != 0 {
		return d
	}
	return -1
}

// TakeOver makes the server one that Handover has written down, and that is suspended.
func (s *Server) TakeOver(h *wire.HandoverServer, t *fds.Table) error {
	if h == nil {
		return errors.New("there is no server in the state")
	}
	listener, err := t.File(h.Listener, "listening socket")
	if err == nil && listener == nil {
		err = errors.New("there is no listening socket in the state")
	}
	if err != nil {
		return err
	}
	s.listener, s.suspended = listener, true
	s.accepting.Lock()
	for _, one := range h.Conns {
		file, err := t.File(one.FD, "ttrpc connection")
		if err != nil {
			return err
		}
		c := s.newConn(file, one)
		if file == nil {
			one.Calls = nil // there is no one to be answered
			c.cancel()
		}
		for _, w := range one.Calls {
			again := &call{conn: c, stream: w.Stream, service: w.Service, method: w.Method, payload: w.Payload, again: true, slot: s.memory.At(w.Slot)}
			if w.Left != 0 {
				again.until = time.Now().Add(time.Duration(w.Left))
			}
			c.waiting = append(c.waiting, again)
		}
		for _, one := range one.Streams {
			if err := c.takeOver(one, t); err != nil {
				return err
			}
		}
		s.mu.Lock() // outlive may have it for another
		if file == nil {
			s.gone[c] = struct{}{}
			go c.outlive()
		} else {
			s.conns[c] = struct{}{}
			s.connected.Add(1)
		}
		s.mu.Unlock()
	}
	return nil
}
