package metrics

import (
	"errors"
	"os"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// Handover writes a group down for the program that comes after this one, with a last reading.
func (g *Group) Handover() *wire.HandoverCgroup {
	h := &wire.HandoverCgroup{}
	if url, message, err := g.Stats(); err == nil {
		h.Last = &wire.Any{TypeURL: url, Value: message}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	h.Kills, h.Closed = g.kills, g.closed
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
