package streaming

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
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
	if st == nil {
		var err error
		if st, err = s.meet(ts); err != nil {
			return err
		}
		if err := ts.Send(&wire.Any{TypeURL: wire.EmptyURL}); err != nil { // the client waits for that
			s.forget(st)
			return err
		}
	} else {
		st.goOn()
	}
	select {
	case <-st.done:
	case <-ctx.Done():
		s.forget(st) // so that it is not taken any more
		switch st.use {
		case output:
			st.abandon()
			<-st.done
		case input: // what has come is for the process yet, which takes its time
			select {
			case <-st.done:
			case <-ts.Halted(): // a connection that is gone is not handed over
				st.over()
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
	s.all[ts], s.open[init.ID] = st, st
	close(s.changed)
	s.changed = make(chan struct{})
	return st, nil
}

func (s *Service) forget(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, st.Stream)
	if s.open[st.id] == st {
		delete(s.open, st.id)
	}
}

// take gives a stream by its id, once, and waits for it as long as ctx allows. From then on it has
// a use, and a pipe that it owns.
func (s *Service) take(ctx context.Context, id string, as use, pipe *os.File) error {
	for {
		s.mu.Lock()
		st, changed := s.open[id], s.changed
		if st != nil {
			delete(s.open, id)
			st.use, st.pipe = as, pipe
			st.begin()
		}
		s.mu.Unlock()
		if st != nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			pipe.Close()
			return fmt.Errorf("wait for a client to open stream %q: %w", id, ctx.Err())
		}
	}
}

// Output leads what is read from a pipe to the client of a stream. It owns the pipe.
func (s *Service) Output(ctx context.Context, id string, from *os.File) error {
	return s.take(ctx, id, output, from)
}

// Input leads what the client of a stream sends into a pipe, which it owns, until
// the client has no more or Stop is called.
func (s *Service) Input(ctx context.Context, id string, to *os.File) error {
	return s.take(ctx, id, input, to)
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
