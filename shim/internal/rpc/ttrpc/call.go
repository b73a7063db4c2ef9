package ttrpc

import (
	"context"
	"errors"
	"time"

	"github.com/berth-runtime/berth/shim/internal/guard"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
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
	slot            *keeper.Slot // nil without a keeper
	ended           func()       // called at the end, if set
}

// underWay is what a context has its call by.
type underWay struct{}

// answer sends the answer. From when it is kept, it is not found out once more: others may have to
// be written first, to a peer that does not read.
func (c *call) answer(r *wire.Response) {
	b := response(c.stream, r)
	if c.slot != nil {
		c.conn.server.memory.Commit(c.answered(b))
	}
	c.conn.send(b, keeper.Change{Slot: c.slot})
}

// begin has the call answered.
func (c *call) begin() {
	s := c.conn.server
	ctx, interrupt := context.WithCancelCause(c.conn.ctx)
	c.interrupt = interrupt
	if c.slot != nil {
		ctx = context.WithValue(ctx, underWay{}, c)
	}
	if c.again {
		ctx = context.WithValue(ctx, resumed{}, true)
	}
	s.answering.Add(1)
	c.conn.under.Add(1)
	s.mu.Lock()
	s.calls[c] = struct{}{}
	s.mu.Unlock()
	go func() {
		defer s.answering.Done()
		defer c.conn.under.Done()
		defer interrupt(nil)
		c.handle(ctx)
		if c.ended != nil {
			c.ended()
		}
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
		c.answer(refusal(Unimplemented, "service "+c.service+" is not implemented"))
		return
	}
	h, known := methods[c.method]
	if !known {
		c.answer(refusal(Unimplemented, "method "+c.method+" of "+c.service+" is not implemented"))
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
		c.answer(refusal(CodeOf(err), err.Error()))
		return
	}
	c.answer(&wire.Response{Status: &wire.Status{}, Payload: answer})
}
