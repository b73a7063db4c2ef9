package keeper

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/start/entry"
	"github.com/berth-runtime/berth/internal/sys"
)

// WaitID is sys.WaitID for the children of the keeper, which it makes in our place: those that an
// earlier shim has left. A pidfd has the same number there.
func (m *Memory) WaitID(idType, id, options int) (sys.ChildExit, error) {
	m.waiting.Lock()
	defer m.waiting.Unlock()
	*m.word(entry.OffIDType), *m.word(entry.OffID) = uint32(idType), uint32(id)
	*m.word(entry.OffOptions) = uint32(options | unix.WEXITED | unix.WNOHANG)
	request := m.word(entry.OffRequest)
	atomic.StoreUint32(request, 1)
	if err := unix.Kill(m.keeper, unix.SIGUSR2); err != nil {
		return sys.ChildExit{}, fmt.Errorf("ask the keeper: %w", err)
	}
	for atomic.LoadUint32(request) == 1 {
		sys.FutexWait(request, 1)
	}
	atomic.StoreUint32(request, 0)
	if result := int32(*m.word(entry.OffResult)); result < 0 {
		return sys.ChildExit{}, unix.Errno(-result)
	}
	return sys.ChildExitAt(m.b[entry.OffInfo:][:128]), nil
}
