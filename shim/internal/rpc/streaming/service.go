package streaming

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// Service knows the streams that clients have opened.
type Service struct {
	mu sync.Mutex
	// all are those that have said their id, and open those that wait to be used.
	all  map[*ttrpc.Stream]*stream
	open map[string]*stream
	// changed is closed, and recreated, when a stream comes.
	changed chan struct{}
}

// New makes a service without streams.
func New() *Service {
	return &Service{all: make(map[*ttrpc.Stream]*stream), open: make(map[string]*stream), changed: make(chan struct{})}
}

// Register makes the service answer on a server.
func (s *Service) Register(server *ttrpc.Server) {
	server.RegisterStream("containerd.services.streaming.v1.Streaming", "Stream", s)
}

// Serve keeps a stream open until it has been used.
func (s *Service) Serve(ctx context.Context, ts *ttrpc.Stream) error {
	s.mu.Lock()
	st := s.all[ts]
	s.mu.Unlock()
	met := st == nil
	if met {
		var err error
		if st, err = s.meet(ts); err != nil {
			return err
		}
	}
	if err := s.answer(st); err != nil {
		s.forget(st)
		return err
	}
	if !met {
		st.goOn()
	}
	select {
	case <-st.done:
	case <-ctx.Done():
		switch s.takenNoMore(st) {
		case output:
			st.abandon()
			<-st.done
		case input: // what has come is for the process yet, which takes its time
			select {
			case <-st.done:
			case <-ts.Halted():
				return ttrpc.ErrSuspended
			}
		}
	case <-ts.Halted():
		return ttrpc.ErrSuspended
	}
	s.forget(st)
	return nil
}

// meet waits for a new stream to say its id.
func (s *Service) meet(ts *ttrpc.Stream) (*stream, error) {
	var first wire.Any
	var init wire.StreamInit
	if err := ts.Recv(&first); err != nil {
		return nil, err
	}
	if err := wire.Unmarshal(first.Value, &init); err != nil || first.TypeURL != wire.StreamInitURL || init.ID == "" {
		return nil, &ttrpc.Error{Code: ttrpc.InvalidArgument, Text: "a stream must begin with its id, in a " + wire.StreamInitURL}
	}
	st := newStream(ts, init.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[init.ID] != nil {
		return nil, &ttrpc.Error{Code: ttrpc.AlreadyExists, Text: "stream " + init.ID + " is open already"}
	}
	ts.Keep(st.state(0))
	s.all[ts], s.open[init.ID] = st, st
	return st, nil
}

// answer tells the client that the stream is there, for which it waits, and then those who wait for
// the stream.
func (s *Service) answer(st *stream) error {
	if st.answered {
		return nil
	}
	if err := st.send(wire.EmptyURL, &wire.Empty{}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.answered = true
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

// takenNoMore has a stream not be used if it is not yet, and gives what it is used for.
func (s *Service) takenNoMore(st *stream) use {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[st.id] == st {
		delete(s.open, st.id)
	}
	return st.use
}

func (s *Service) forget(st *stream) {
	s.takenNoMore(st)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, st.Stream)
	st.stage.Close() // of one that was not used
}

// Await waits, as long as ctx allows, for a client to open a stream, and keeps it from others.
func (s *Service) Await(ctx context.Context, id string) error {
	for {
		s.mu.Lock()
		st, changed := s.open[id], s.changed
		there, err := st != nil && st.answered && !st.awaited, error(nil)
		if there {
			err = st.prepare()
			st.awaited = err == nil
		}
		s.mu.Unlock()
		if there {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for a client to open stream %q: %w", id, ctx.Err())
		}
	}
}

// take gives a stream that was awaited a use, and a pipe that it owns. Its client may be gone.
func (s *Service) take(id string, as use, pipe *os.File) (changes []keeper.Change, begin func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.open[id]
	if st == nil || !st.answered || st.prepare() != nil {
		return nil, func() { pipe.Close() }
	}
	delete(s.open, id)
	return st.useAs(as, pipe), st.begin
}

// Output leads what is read from a pipe to the client of a stream that was awaited, when the
// changes have been made and it has begun. It owns the pipe.
func (s *Service) Output(id string, from *os.File) (changes []keeper.Change, begin func()) {
	return s.take(id, output, from)
}

// Input leads what the client of a stream sends into a pipe, which it owns, until the client has no
// more or Stop is called. It is as Output else.
func (s *Service) Input(id string, to *os.File) (changes []keeper.Change, begin func()) {
	return s.take(id, input, to)
}

// Stop has no more taken from the client of an input.
func (s *Service) Stop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.all {
		if st.id == id && st.use == input {
			st.Close(io.EOF)
		}
	}
}
