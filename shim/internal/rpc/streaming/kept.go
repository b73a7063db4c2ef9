package streaming

import (
	"errors"
	"fmt"
	"os"

	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/internal/staged"
	"github.com/berth-runtime/berth/shim/keeper"
)

// What of a stream is in the keeper's memory: what its client has sent, and has granted, which is
// noted at the instant that a message of it is kept no more; and what it is used for and was sent,
// which is noted at the instant that a message to it is on its way.

// state is what is noted with what has come.
func (st *stream) state(heard uint64) []byte {
	if st.Memory() == nil {
		return nil
	}
	return wire.Marshal(&wire.KeptStdio{ID: st.id, Heard: heard})
}

// kept is what is noted with what is sent, and when the use is over.
func (st *stream) kept(over bool) keeper.Change {
	m := st.Memory()
	if m == nil {
		return keeper.Change{}
	}
	if st.slot == nil {
		st.slot = m.Slot()
		st.Own(st.slot)
	}
	k := &wire.KeptUse{Of: st.Number(), Use: uint32(st.use), Told: st.told, Over: over}
	if !over {
		t := fds.New()
		k.Pipe, k.Stage = t.Number(st.pipe), st.stage.Handover(t)
		m.Holds(t.Max())
	}
	return keeper.Change{Slot: st.slot, Kind: keeper.Use, Data: wire.Marshal(k)}
}

// prepare makes what a use needs. There is nothing of it in the keeper's memory until then.
func (st *stream) prepare() (err error) {
	m := st.Memory()
	if m == nil || st.stage != nil {
		return nil
	}
	if st.stage, st.staged, err = staged.New(m); err != nil {
		return fmt.Errorf("make a pipe for stream %q: %w", st.id, err)
	}
	st.Own(st.stage.Slot())
	return nil
}

// useAs has a stream be used, from when the changes are made and it has begun.
func (st *stream) useAs(as use, pipe *os.File) []keeper.Change {
	st.use, st.pipe = as, pipe
	return []keeper.Change{st.staged, st.kept(false)}
}

// offBase is how much had been sent before what is in the room of the stage of an output.
const offBase = staged.Own

// readStage is read through a stage.
func (st *stream) readStage() ([]byte, error) {
	g := st.stage
	if _, err := g.Open(); err != nil {
		return nil, err
	}
	for {
		data, sent := g.Data(), st.told-*g.Word(offBase)
		if sent < uint64(len(data)) {
			return data[sent:], nil
		}
		g.Clear()
		*g.Word(offBase) = st.told
		if more, err := g.Read(); more || err != nil {
			if err != nil {
				return nil, err
			}
			continue
		}
		if n, err := g.Fill(st.pipe); n == 0 {
			return nil, err
		}
	}
}

// inherit makes a stream that the shim before has kept.
func inherit(ts *ttrpc.Stream, state []byte, t *fds.Table) (*stream, error) {
	var h wire.KeptStdio
	if err := wire.Unmarshal(state, &h); err != nil {
		return nil, fmt.Errorf("read the state of a stream: %w", err)
	}
	st := newStream(ts, h.ID)
	st.heard = h.Heard
	for _, p := range ts.Memory().Pieces(keeper.Use) {
		var k wire.KeptUse
		if wire.Unmarshal(p.Data, &k) != nil || k.Of != ts.Number() {
			continue
		}
		st.answered, st.slot, st.use, st.told = true, p.Slot, use(k.Use), k.Told
		st.Own(p.Slot)
		if k.Over {
			close(st.done)
		}
		if k.Over || st.use == waiting {
			break
		}
		return st, st.inheritUse(&k, t)
	}
	return st, nil
}

func (st *stream) inheritUse(k *wire.KeptUse, t *fds.Table) (err error) {
	if st.pipe, err = t.File(k.Pipe, "stream "+st.id); err == nil && st.pipe == nil {
		err = fmt.Errorf("stream %s in the state has no pipe", st.id)
	}
	st.stage = staged.TakeOver(k.Stage, st.Memory(), func(n uint32, what string) *os.File {
		f, fileErr := t.File(n, what)
		err = errors.Join(err, fileErr)
		return f
	})
	st.Own(st.stage.Slot())
	st.begun = true
	return err
}
