package systemd

import (
	"context"
	"fmt"
	"sync"

	"github.com/berth-runtime/berth/internal/dbus"
)

// connection is a connection to systemd with those who wait for jobs on it. It
// is the handler of its own signals.
type connection struct {
	*dbus.Conn
	private bool
	name    string // ours on the bus

	mu      sync.Mutex
	waiting map[string][]*jobWaiter // by unit
	told    []*listener
	over    bool
}

// jobWaiter collects the ends of the jobs of a unit. It is put up before the
// call that begins the job, because the end may come in before the call's reply
// is looked at.
type jobWaiter struct {
	unit  string
	ended chan ended
}

type ended struct {
	job    dbus.ObjectPath
	result string
}

// watch puts up a waiter for a unit.
func (c *connection) watch(ctx context.Context, unit string) (*jobWaiter, error) {
	if !c.private {
		// The rule names the unit, so that a hundred clients do not each
		// wake up for the jobs of all the others.
		if _, err := c.Call(ctx, busCall("AddMatch", "s", matchRule(unit))); err != nil {
			return nil, err
		}
	}
	// A unit has one job at a time; a few may end while we wait for ours.
	w := &jobWaiter{unit: unit, ended: make(chan ended, 16)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil, dbus.ErrClosed
	}
	c.waiting[unit] = append(c.waiting[unit], w)
	return w, nil
}

func matchRule(unit string) string {
	// Unit names have no quotes and no commas.
	return "type='signal',interface='" + managerInterface + "',member='JobRemoved',path='" + string(managerPath) + "',arg2='" + unit + "'"
}

// unwatch takes a waiter down. It does not wait for the bus to confirm that.
func (c *connection) unwatch(w *jobWaiter) {
	if !c.private {
		c.tell(busCall("RemoveMatch", "s", matchRule(w.unit)))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.waiting[w.unit]
	for i := range list {
		if list[i] == w {
			c.waiting[w.unit] = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(c.waiting[w.unit]) == 0 {
		delete(c.waiting, w.unit)
	}
}

// Signal implements dbus.Handler.
func (c *connection) Signal(signal *dbus.Signal) {
	if signal.Interface != managerInterface || signal.Member != "JobRemoved" {
		c.tellListeners(signal)
		return
	}
	var id uint32
	var e ended
	var unit string
	if into(signal.Body, &id, &e.job, &unit, &e.result) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.waiting[unit] {
		select {
		case w.ended <- e:
		default: // not one of the few jobs that can be ours
		}
	}
}

// Closed implements dbus.Handler: the connection is gone.
func (c *connection) Closed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for _, list := range c.waiting {
		for _, w := range list {
			close(w.ended)
		}
	}
	c.waiting = map[string][]*jobWaiter{}
	for _, l := range c.told {
		close(l.changes)
	}
	c.told = nil
}

// wait waits until a job has ended, and gives its result.
func (w *jobWaiter) wait(ctx context.Context, job dbus.ObjectPath) error {
	for {
		select {
		case e, ok := <-w.ended:
			switch {
			case !ok:
				return dbus.ErrClosed
			case e.job != job:
				continue
			case e.result == "done":
				return nil
			}
			return &JobError{Result: e.result}
		case <-ctx.Done():
			return fmt.Errorf("the job did not end: %w", context.Cause(ctx))
		}
	}
}
