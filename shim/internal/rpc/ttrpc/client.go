package ttrpc

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// Client calls a server over one connection, one call at a time. It is not
// safe for use by several goroutines, except for Close and Suspend.
type Client struct {
	conn   *os.File
	in     *frameReader
	stream uint32

	// A call that Suspend has interrupted: its stream, 0 for none, what of it is still to be
	// written, and until when it waits.
	waiting uint32
	out     []byte
	until   time.Time
	late    bool // until is over

	// Mark is what the next call is about, for who inherits it. With a keeper, out is not used, but
	// kept.
	Mark uint64
	kept *outbox

	mu        sync.Mutex
	suspended bool
	since     time.Time // suspended
}

// NewClient takes over conn.
func NewClient(conn *os.File) *Client {
	return &Client{conn: conn, in: newFrameReader(conn), stream: 1}
}

// Close closes the connection; a call that is waiting fails.
func (c *Client) Close() error {
	if c.kept != nil {
		c.kept.memory.Commit(keeper.Change{Slot: c.in.kept.slot}, keeper.Change{Slot: c.kept.slot})
	}
	return c.conn.Close()
}

// Keep has the connection, and the call that is under way, in the keeper's memory. It must be
// called before the first call.
func (c *Client) Keep(m *keeper.Memory) error {
	in, err := newInbox(m, keeper.Forwarding, c.conn, 0, c.in, nil, 0)
	if err != nil {
		return err
	}
	c.kept = newOutbox(m, keeper.Forwarded, in.slot)
	return nil
}

// InheritClient gives the client of a shim that was killed, nil if it had none, and what its last
// call was about. That call is to be made again if it still matters, and goes on where it was, with
// a time of its own.
func InheritClient(m *keeper.Memory, t *fds.Table, timeout time.Duration) (c *Client, mark uint64, err error) {
	inboxes := make(map[uint32]keeper.Piece)
	for _, p := range m.Pieces(keeper.Forwarding) {
		inboxes[p.Number()] = p
	}
	for _, p := range m.Pieces(keeper.Forwarded) {
		in, there := inboxes[outboxOwner(p)]
		if !there || c != nil {
			p.Drop()
			continue
		}
		h := inherited(in)
		conn, err := t.File(h.FD, "ttrpc connection")
		if err != nil || conn == nil {
			return nil, 0, err
		}
		c = NewClient(conn)
		if c.kept, err = inheritOutbox(m, keeper.Forwarded, p.Number()); err != nil {
			return nil, 0, err
		}
		c.in.buf, c.in.skip, c.in.over = h.In, h.Skip, header{stream: h.Over, length: h.Length}
		if _, err = newInbox(m, keeper.Forwarding, conn, 0, c.in, in.Slot, h.Position); err != nil {
			return nil, 0, err
		}
		c.waiting, mark = c.kept.about()
		c.stream, c.until = c.waiting+2, time.Now().Add(timeout)
	}
	for _, p := range inboxes {
		if c == nil || p.Number() != c.in.kept.slot.Number() {
			p.Drop()
		}
	}
	return c, mark, nil
}

// Forget has the call that was inherited be none that is waited for.
func (c *Client) Forget() { c.waiting = 0 }

// Call calls a method and decodes its answer into resp. An error of type *Error
// is the server's answer. After ErrSuspended the same call is to be made again, and goes
// on where it was; so it may be when its time is over (os.ErrDeadlineExceeded), and has as much
// once more. After any other error the connection is of no use.
func (c *Client) Call(service, method string, metadata []*wire.KeyValue, timeout time.Duration, req, resp wire.Message) error {
	if c.waiting == 0 {
		b, err := frame(c.stream, typeRequest, flagRemoteClosed, &wire.Request{
			Service: service, Method: method, Metadata: metadata,
			Payload: wire.Marshal(req), TimeoutNano: int64(timeout),
		})
		if err != nil {
			return &Error{Code: ResourceExhausted, Text: err.Error(), Cause: err}
		}
		if c.kept == nil {
			c.out = b
		} else if err := c.kept.put(b, c.stream, c.Mark); err != nil {
			return fmt.Errorf("call %s: %w", method, err)
		}
		c.waiting, c.until = c.stream, time.Now().Add(timeout)
		c.stream += 2
	}
	if c.late {
		c.late, c.until = false, time.Now().Add(timeout)
	}
	err := c.await(method, resp)
	switch {
	case errors.Is(err, ErrSuspended):
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.late = true
	default:
		c.waiting, c.out = 0, nil
	}
	return err
}

// await sends what is left of the call, and waits for its answer.
func (c *Client) await(method string, resp wire.Message) error {
	if err := c.deadline(); err != nil {
		return fmt.Errorf("bound a call of %s: %w", method, err)
	}
	if err := c.write(); err != nil {
		return fmt.Errorf("call %s: %w", method, c.cause(err))
	}
	for {
		h, body, err := c.in.next()
		var oversized errOversized
		if errors.As(err, &oversized) && h.stream == c.waiting {
			if err := c.in.dropped(); err != nil {
				return fmt.Errorf("wait for the answer of %s: %w", method, err)
			}
			return &Error{Code: ResourceExhausted, Text: "answer of " + method + ": " + err.Error(), Cause: err}
		}
		if err != nil {
			return fmt.Errorf("wait for the answer of %s: %w", method, c.cause(err))
		}
		if h.kind != typeResponse || h.stream != c.waiting {
			continue
		}
		var r wire.Response
		if err := wire.Unmarshal(body, &r); err != nil {
			return fmt.Errorf("read the answer of %s: %w", method, err)
		}
		if r.Status != nil && r.Status.Code != 0 {
			return &Error{Code: Code(r.Status.Code), Text: r.Status.Message}
		}
		if err := wire.Unmarshal(r.Payload, resp); err != nil {
			return fmt.Errorf("read the answer of %s: %w", method, err)
		}
		return nil
	}
}

func (c *Client) write() error {
	if c.kept != nil {
		return c.kept.flush(c.conn)
	}
	n, err := c.conn.Write(c.out)
	c.out = c.out[n:]
	return err
}

func (c *Client) deadline() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.suspended {
		return ErrSuspended
	}
	return c.conn.SetDeadline(c.until)
}

// cause tells a deadline that was the call's from one that Suspend has set.
func (c *Client) cause(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.suspended && errors.Is(err, os.ErrDeadlineExceeded) {
		return ErrSuspended
	}
	return err
}

// Suspend interrupts the call that is under way, and any other until Resume.
func (c *Client) Suspend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspended, c.since = true, time.Now()
	c.conn.SetDeadline(longAgo)
}

// Resume ends what Suspend has begun. No call may be under way. One that was has as much time left
// as it had: its answer may have come meanwhile, and an event that is given up is sent again.
func (c *Client) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.suspended {
		c.until = c.until.Add(time.Since(c.since))
	}
	c.suspended = false
}

// Handover writes a suspended client down.
func (c *Client) Handover(h *wire.HandoverEvents, t *fds.Table) {
	// An answer that is longer than ttrpc allows is none of an event's; its connection is given up.
	if c.in.over.length > 0 {
		return
	}
	h.FD, h.Next, h.Waiting = t.Number(c.conn), c.stream, c.waiting
	h.In, h.Out = c.in.buf, c.out
	if c.waiting != 0 {
		h.Left = int64(c.until.Sub(c.since))
	}
}

// TakeOverClient makes the client that Handover has written down, nil of none. It is suspended.
func TakeOverClient(h *wire.HandoverEvents, t *fds.Table) (*Client, error) {
	conn, err := t.File(h.FD, "ttrpc connection")
	if conn == nil {
		return nil, err
	}
	c := NewClient(conn)
	c.in.buf, c.out, c.stream, c.waiting = h.In, h.Out, h.Next, h.Waiting
	c.suspended, c.since = true, time.Now()
	c.until = c.since.Add(time.Duration(h.Left))
	return c, nil
}
