package ttrpc

import (
	"context"
	"errors"
	"time"

	"github.com/berth-runtime/berth/shim/internal/guard"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// call is one call.
type call struct {
	conn            *serverConn
	stream          uint32
	service, method string
	payload         []byte
	until           time.Time // zero is for ever
	again           bool      // it has been interrupted by Suspend
	interrupt       context.CancelCauseFunc
}

// begin has the call answered.
func (c *call) begin() {
	s := c.conn.server
	ctx, interrupt := context.WithCancelCause(c.conn.ctx)
	c.interrupt = interrupt
	if c.again {
		ctx = context.WithValue(ctx, resumed{}, true)
	}
	s.answering.Add(1)
	s.mu.Lock()
	s.calls[c] = struct{}{}
	s.mu.Unlock()
	go func() {
		defer s.answering.Done()
		defer interrupt(nil)
		c.handle(ctx)
		s.mu.Lock()
		delete(s.calls, c)
		s.quiet.Broadcast()
		s.mu.Unlock()
	}()
}

func (c *call) handle(ctx context.Context) {
	conn := c.conn
	if !c.until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, c.until)
		defer cancel()
	}
	methods, known := conn.server.services[c.service]
	if !known {
		conn.refuse(c.stream, Unimplemented, "service "+c.service+" is not implemented")
		return
	}
	h, known := methods[c.method]
	if !known {
		conn.refuse(c.stream, Unimplemented, "method "+c.method+" of "+c.service+" is not implemented")
		return
	}
	var answer []byte
	err := guard.Do(conn.server.log, func() error {
		message, err := h(ctx, c.payload)
		if err == nil {
			answer = wire.Marshal(message)
		}
		return err
	})
	if errors.Is(err, ErrSuspended) {
		conn.mu.Lock()
		conn.waiting = append(conn.waiting, c)
		conn.mu.Unlock()
		return
	}
	if err != nil {
		conn.refuse(c.stream, CodeOf(err), err.Error())
		return
	}
	conn.answer(c.stream, &wire.Response{Status: &wire.Status{}, Payload: answer})
}
