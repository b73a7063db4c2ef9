package ttrpc

import (
	"errors"
	"os"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// keep has what is read and written in the keeper's memory.
func (c *serverConn) keep(h *wire.HandoverConn) (err error) {
	m := c.server.memory
	slot := m.At(h.Slot)
	if slot != nil {
		c.from, c.read = h, h.Last
	}
	in, err := newInbox(m, keeper.Connection, c.file, h.Last, c.in, slot, h.Position)
	if err != nil {
		return err
	}
	if h.OutSlot == 0 {
		c.keptOut = newOutbox(m, keeper.Answers, in.slot)
	} else {
		c.keptOut, err = inheritOutbox(m, keeper.Answers, h.OutSlot)
	}
	if err == nil {
		c.kept = in
	}
	return err
}

// send writes an answer. With a keeper, it is on its way at the instant that changes are made.
func (c *serverConn) send(b []byte, with ...keeper.Change) error {
	c.write.Lock()
	defer c.write.Unlock()
	if c.keptOut != nil {
		c.queue(b, with...)
		return c.flushKept()
	}
	c.server.memory.Commit(with...)
	if len(c.out) > 0 {
		c.out = append(c.out, b...)
		return nil
	}
	n, err := c.file.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) { // which only Suspend sets
		c.out = append(c.out, b[n:]...)
		return nil
	}
	return err
}

// queue has an answer written after those that are to be already.
func (c *serverConn) queue(b []byte, with ...keeper.Change) {
	if err := c.keptOut.put(b, 0, 0, with...); err != nil {
		c.server.log("keep an answer: " + err.Error())
	}
}

func (c *serverConn) flushKept() error {
	err := c.keptOut.flush(c.file)
	if errors.Is(err, os.ErrDeadlineExceeded) { // which only Suspend sets
		return nil
	}
	if err != nil {
		c.keptOut.clear()
	}
	return err
}
