package keeper

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/berth-runtime/berth/internal/start/entry"
)

// ErrFull says that there is no room any more.
var ErrFull = errors.New("the memory that the shim shares with its keeper is full: from now on it is not upgraded, and does not survive being killed")

// Next has the keeper execute another program when this process ends with the status entry.Again,
// and, should that end before it calls Confirm, the one at undo. What that program is to find must
// have been put there before.
func (m *Memory) Next(program, undo string) error {
	m.mu.Lock()
	full := m.own != nil
	m.mu.Unlock()
	if full {
		return ErrFull
	}
	for _, p := range []struct {
		path string
		at   int
		room int
	}{{undo, entry.OffUndo, entry.OffProgram - entry.OffUndo}, {program, entry.OffProgram, 1024}} {
		if len(p.path) >= p.room {
			return fmt.Errorf("the path %s is longer than the %d bytes that a keeper has for it", p.path, p.room-1)
		}
		clear(m.b[p.at:][:p.room])
		copy(m.b[p.at:], p.path)
	}
	atomic.StoreUint32(m.word(entry.OffStage), entry.StageAsked)
	return nil
}

// Stage says where an upgrade is: entry.StageTried in the new program, and entry.StageBack in the
// old one if the new one has failed.
func (m *Memory) Stage() uint32 { return atomic.LoadUint32(m.word(entry.OffStage)) }

// Confirm says that this program has taken over.
func (m *Memory) Confirm() { atomic.StoreUint32(m.word(entry.OffStage), entry.StageNone) }
