package streaming

import (
	"fmt"

	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// Halt has a stream come to a point where it can be written down.
func (s *Service) Halt(ts *ttrpc.Stream) {
	s.mu.Lock()
	st := s.all[ts]
	s.mu.Unlock()
	if st != nil {
		st.halt()
	}
}

// Handover writes a halted stream down. There is nothing of one that has not said its id.
func (s *Service) Handover(ts *ttrpc.Stream, t *fds.Table) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.all[ts]
	if st == nil {
		return nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return wire.Marshal(&wire.StreamState{
		ID: st.id, Use: uint32(st.use), Pipe: t.Number(st.pipe), Rest: st.rest, Last: st.last, Room: int64(st.room), Over: st.isOver(),
	})
}

// TakeOver makes a stream that Handover has written down.
func (s *Service) TakeOver(ts *ttrpc.Stream, state []byte, t *fds.Table) error {
	if len(state) == 0 {
		return nil
	}
	var h wire.StreamState
	if err := wire.Unmarshal(state, &h); err != nil {
		return fmt.Errorf("read the state of a stream: %w", err)
	}
	st := newStream(ts, h.ID)
	st.use, st.rest, st.last, st.room = use(h.Use), h.Rest, h.Last, int(h.Room)
	if h.Over {
		close(st.done)
	} else if st.use != waiting {
		var err error
		if st.pipe, err = t.File(h.Pipe, "stream "+h.ID); err != nil {
			return err
		}
		if st.pipe == nil {
			return fmt.Errorf("stream %s in the state has no pipe", h.ID)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[ts] = st
	if st.use == waiting && !h.Over {
		s.open[h.ID] = st
	}
	return nil
}
