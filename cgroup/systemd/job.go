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

	mu      sync.Mutex
	waiting map[string][]*jobWaiter // by unit
	stale   []string                // rules of the bus that nothing waits for any more
	told    []*listener
	over    bool
}

// jobWaiter collects the ends of the jobs of a unit. It is put up before the
// call that begins the job, because the end may come in before the call's reply
// is looked at.
type jobWaiter struct {
	unit  string
	ended chan ended
	rule  *dbus.Pending // the bus's answer, nil without one
}

type ended struct {
	job    dbus.ObjectPath
	result string
}

// watch puts up a waiter for a unit. systemd tells the end of a job to the client that queued it,
// also without Subscribe; that would have it tell of everything else as well.
func (c *connection) watch(ctx context.Context, unit string) (*jobWaiter, error) {
	// A unit has one job at a time; a few may end while we wait for ours.
	w := &jobWaiter{unit: unit, ended: make(chan ended, 16)}
	if !c.private {
		// The rule names the unit, so that a hundred clients do not each wake up for the jobs of
		// all the others. The bus knows it before it passes on the call that comes next.
		var err error
		if w.rule, err = c.Go(ctx, busCall("AddMatch", "s", matchRule(unit))); err != nil {
			return nil, err
		}
	}
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

// mostRules is how many rules without a waiter a connection keeps: most connections end with their
// first job, and their rules with them. The bus lets one have some hundreds (dbus-daemon(1),
// max_match_rules_per_connection).
const mostRules = 32

// unwatch takes a waiter down.
func (c *connection) unwatch(w *jobWaiter) {
	for _, rule := range c.forget(w) {
		c.tell(busCall("RemoveMatch", "s", rule))
	}
}

// forget gives the rules that are to be removed, when there are many.
func (c *connection) forget(w *jobWaiter) (rules []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.private {
		c.stale = append(c.stale, matchRule(w.unit))
	}
	if len(c.stale) > mostRules {
		rules, c.stale = c.stale, nil
	}
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
	return rules
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
