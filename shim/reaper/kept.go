package reaper

import (
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// noted is an exit that was reaped by the shim before this one.
type noted struct {
	exit Exit
	slot *keeper.Slot
}

// Keep has exits noted in the memory before they are reaped. It must be called before Resume.
func (r *Reaper) Keep(m *keeper.Memory) { r.memory = m }

// Inherit is for a shim that comes after one that was killed: its children are the keeper's now,
// and the exits that it has reaped are noted. It must be called before Adopt and Resume.
func (r *Reaper) Inherit() {
	r.kept, r.noted = true, make(map[int]noted)
	for _, p := range r.memory.Pieces(keeper.Exit) {
		var e wire.KeptExit
		if wire.Unmarshal(p.Data, &e) == nil {
			r.noted[int(e.Pid)] = noted{Exit{int(e.Pid), int(e.Status), e.At.Time()}, p.Slot}
		}
	}
}

// Noted is the exit of a process, if the shim before this one has reaped it.
func (r *Reaper) Noted(pid int) (Exit, bool) {
	n, known := r.noted[pid]
	return n.exit, known
}

// Forget drops what the shim before this one has noted, which by now is noted elsewhere.
func (r *Reaper) Forget() {
	for _, n := range r.noted {
		n.slot.Drop()
	}
	r.noted = nil
}

func (r *Reaper) noteExit(e Exit) *keeper.Slot {
	slot := r.memory.Slot()
	slot.Put(keeper.Exit, wire.Marshal(&wire.KeptExit{Pid: uint32(e.Pid), Status: uint32(e.Status), At: wire.Time(e.At)}))
	return slot
}
