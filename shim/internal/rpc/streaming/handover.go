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
	room := int64(st.heard - st.told)
	if st.use == input {
		room = -room
	}
	return wire.Marshal(&wire.StreamState{
		ID: st.id, Use: uint32(st.use), Pipe: t.Number(st.pipe), Rest: st.rest, Last: st.last, Room: room, Over: st.isOver(),
	})
}

// TakeOver makes a stream that Handover has written down, or is in the keeper's memory.
func (s *Service) TakeOver(ts *ttrpc.Stream, state []byte, t *fds.Table) error {
	if len(state) == 0 {
		return nil
	}
	var st *stream
	var err error
	if ts.Memory() != nil {
		st, err = inherit(ts, state, t)
	} else {
		st, err = takeOver(ts, state, t)
	}
	if err != nil {
		return err
	}
	st.halted = true // until Serve is called
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[ts] = st
	if st.use == waiting {
		s.open[st.id] = st
	}
	return nil
}

func takeOver(ts *ttrpc.Stream, state []byte, t *fds.Table) (*stream, error) {
	var h wire.StreamState
	if err := wire.Unmarshal(state, &h); err != nil {
		return nil, fmt.Errorf("read the state of a stream: %w", err)
	}
	st := newStream(ts, h.ID)
	st.use, st.rest, st.last, st.answered = use(h.Use), h.Rest, h.Last, true
	if st.use == input {
		st.told = uint64(h.Room)
	} else {
		st.heard = uint64(h.Room)
	}
	if h.Over {
		close(st.done)
	} else if st.use != waiting {
		var err error
		if st.pipe, err = t.File(h.Pipe, "stream "+h.ID); err != nil {
			return nil, err
		}
		if st.pipe == nil {
			return nil, fmt.Errorf("stream %s in the state has no pipe", h.ID)
		}
		st.begun = true
	}
	return st, nil
}
