package metrics

import (
	"errors"
	"os"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// Handover writes a group down for the program that comes after this one, with a last reading.
func (g *Group) Handover() *wire.HandoverCgroup {
	_, _, _ = g.Stats() // where there is nothing to be read, the reading before is the last
	return g.Noted()
}

// Noted is what Handover gives, with what was read before, if anything was.
func (g *Group) Noted() *wire.HandoverCgroup {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := &wire.HandoverCgroup{Kills: g.kills, Closed: g.closed, Last: g.before}
	if g.last != nil {
		url, message := g.message()
		h.Last = &wire.Any{TypeURL: url, Value: message}
	}
	if g.group != nil {
		h.Path = g.group.Path()
	}
	return h
}

// TakeOver opens the group of a process that Handover has written down. A process that has ended
// meanwhile does not tell where it was: then it is where its path says.
func TakeOver(h *wire.HandoverCgroup, pid int, ended bool) (engine.Cgroup, error) {
	host, err := host()
	if err != nil {
		return nil, err
	}
	g := &Group{host: host, kills: h.Kills, closed: h.Closed, before: h.Last}
	if h.Closed {
		return g, nil
	}
	if !ended {
		g.group, err = host.OfProcess(pid, only(host))
	}
	if (ended || err != nil || g.group.Path() != h.Path) && h.Path != "" {
		g.group, err = host.Open(h.Path, only(host))
	}
	if err != nil {
		g.group = nil // mostly it has gone, and with what it has said last it is told of all the same
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return g, err
}
