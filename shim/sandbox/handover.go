package sandbox

import (
	"fmt"

	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
	"github.com/berth-runtime/berth/shim/reaper"
)

// Handover writes the sandbox down, if there is one, for another program of this process. There
// must be no calls, and the reaper must be suspended.
func (s *Service) Handover() *wire.HandoverBox {
	s.mu.Lock()
	b := s.box
	s.mu.Unlock()
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.handover()
	if b.cgroup != nil {
		h.Cgroup = b.cgroup.Handover()
	}
	return h
}

// Keep writes the sandbox of a suspended shim into the keeper's memory, with what its cgroup has
// said.
func (s *Service) Keep() {
	if h := s.Handover(); h != nil && s.box.slot != nil {
		s.box.slot.Put(keeper.Sandbox, wire.Marshal(h))
	}
}

// keep writes the sandbox into the keeper's memory, if there is one. The lock must be held.
func (b *box) keep() {
	if b.slot == nil {
		return
	}
	h := b.handover()
	if b.cgroup != nil { // to read it takes longer than all the rest
		h.Cgroup = b.cgroup.Noted()
	}
	b.slot.Put(keeper.Sandbox, wire.Marshal(h))
}

// handover is all but the cgroup. The lock must be held.
func (b *box) handover() *wire.HandoverBox {
	h := &wire.HandoverBox{
		ID: b.id, Bundle: b.bundle, Options: b.options.Handover(), Pid: uint32(b.pid), Made: b.handle != nil, Down: b.down, Ended: b.ended(),
	}
	if !b.started.IsZero() {
		h.Started = wire.Time(b.started)
	}
	if h.Ended {
		h.Status, h.At = uint32(b.exit.Status), wire.Time(b.exit.At)
	}
	return h
}

// Kept is the sandbox that a shim which was killed has left in the keeper's memory, nil for none.
func Kept(m *keeper.Memory) (h *wire.HandoverBox, err error) {
	for _, p := range m.Pieces(keeper.Sandbox) {
		h = new(wire.HandoverBox)
		if err := wire.Unmarshal(p.Data, h); err != nil {
			return nil, fmt.Errorf("read what the shim before has left: %w", err)
		}
		h.Slot = p.Number()
	}
	return h, nil
}

// TakeOver is for a new service, that goes on where Handover has left off.
func (s *Service) TakeOver(h *wire.HandoverBox) error {
	if h == nil {
		return nil
	}
	b := &box{
		id: h.ID, bundle: h.Bundle, tasks: s.tasks, options: options.TakeOver(h.Options), pid: int(h.Pid), down: h.Down,
		done: make(chan struct{}), slot: s.tasks.Memory.At(h.Slot),
	}
	if h.Started != nil {
		b.started = h.Started.Time()
	}
	var err error
	if b.engine, err = s.tasks.Engine(b.options); err != nil {
		return err
	}
	if h.Made {
		b.handle = b.engine.Find(b.id, b.bundle)
	}
	if e, known := s.tasks.Reaper.Noted(b.pid); known && !h.Ended {
		b.onExit(e)
	} else if h.Ended {
		b.exit = reaper.Exit{Pid: b.pid, Status: int(h.Status), At: h.At.Time()}
		close(b.done)
	} else if _, err := s.tasks.Reaper.Adopt(b.pid, b.onExit); err != nil {
		return err
	}
	if h.Cgroup != nil {
		if b.cgroup, err = s.tasks.FindCgroup(h.Cgroup, b.pid, h.Ended); err != nil {
			s.tasks.Log("find the cgroup of sandbox " + b.id + " again: " + err.Error())
		}
	}
	s.box = b
	return nil
}
