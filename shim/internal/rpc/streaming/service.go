package streaming

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

const (
	// piece is the most that one message carries, and window how much a client may
	// send before it hears from us: the sizes that containerd has.
	piece  = 32 << 10
	window = 2 * piece
)

// Service knows the streams that clients have opened.
type Service struct {
	mu   sync.Mutex
	open map[string]*stream
	// changed is closed, and recreated, when a stream comes.
	changed chan struct{}
}

// stream is one that waits to be used, or is.
type stream struct {
	*ttrpc.Stream
	done chan struct{} // closed when its use is over
}

// New makes a service without streams.
func New() *Service {
	return &Service{open: make(map[string]*stream), changed: make(chan struct{})}
}

// Register makes the service answer on a server.
func (s *Service) Register(server *ttrpc.Server) {
	server.RegisterStream("containerd.services.streaming.v1.Streaming", "Stream", s.serve)
}

// serve keeps a stream open until it is asked for by its id.
func (s *Service) serve(ctx context.Context, ts *ttrpc.Stream) error {
	var first wire.Any
	var init wire.StreamInit
	if err := ts.Recv(&first); err != nil {
		return err
	}
	if err := wire.Unmarshal(first.Value, &init); err != nil || first.TypeURL != wire.StreamInitURL || init.ID == "" {
		return &ttrpc.Error{Code: ttrpc.InvalidArgument, Text: "a stream must begin with its id, in a " + wire.StreamInitURL}
	}
	st := &stream{ts, make(chan struct{})}
	s.mu.Lock()
	if s.open[init.ID] != nil {
		s.mu.Unlock()
		return &ttrpc.Error{Code: ttrpc.AlreadyExists, Text: "stream " + init.ID + " is open already"}
	}
	s.open[init.ID] = st
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	defer s.forget(init.ID, st)
	if err := ts.Send(&wire.Any{TypeURL: wire.EmptyURL}); err != nil { // the client waits for that
		return err
	}
	select {
	case <-st.done:
	case <-ctx.Done():
	}
	return nil
}

func (s *Service) forget(id string, st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[id] == st {
		delete(s.open, id)
	}
}

// take gives a stream by its id, once, and waits for it as long as ctx allows.
func (s *Service) take(ctx context.Context, id string) (*stream, error) {
	for {
		s.mu.Lock()
		st, changed := s.open[id], s.changed
		delete(s.open, id)
		s.mu.Unlock()
		if st != nil {
			return st, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a client to open stream %q: %w", id, ctx.Err())
		}
	}
}

// Output leads what is read from a pipe to the client of a stream. It owns the pipe.
func (s *Service) Output(ctx context.Context, id string, from *os.File) error {
	st, err := s.take(ctx, id)
	if err != nil {
		from.Close()
		return err
	}
	w := &allowance{}
	w.more.L = &w.mu
	st.Go(func() { w.listen(st) })
	st.Go(func() {
		defer close(st.done)
		defer from.Close()
		buf := make([]byte, piece)
		for {
			// Read before there is room, as the end of the output needs none.
			n, err := from.Read(buf)
			for rest := buf[:n]; len(rest) > 0; {
				part := rest[:min(w.wait(), len(rest))]
				if len(part) == 0 {
					return // the client is gone
				}
				w.use(len(part))
				if send(st, wire.DataURL, &wire.Data{Data: part}) != nil {
					return
				}
				rest = rest[len(part):]
			}
			if err != nil {
				return
			}
		}
	})
	return nil
}

// Input leads what the client of a stream sends into a pipe, which it owns, until
// the client has no more or stop is called.
func (s *Service) Input(ctx context.Context, id string, to *os.File) (stop func(), err error) {
	st, err := s.take(ctx, id)
	if err != nil {
		to.Close()
		return nil, err
	}
	st.Go(func() {
		defer close(st.done)
		defer to.Close()
		room := 0
		for {
			if room < window {
				if send(st, wire.WindowUpdateURL, &wire.WindowUpdate{Update: window}) != nil {
					return
				}
				room += window
			}
			var any wire.Any
			var data wire.Data
			if st.Recv(&any) != nil || any.TypeURL != wire.DataURL || wire.Unmarshal(any.Value, &data) != nil {
				return
			}
			if _, err := to.Write(data.Data); err != nil {
				return
			}
			room -= len(data.Data)
		}
	})
	return func() { st.Close(io.EOF) }, nil
}

func send(st *stream, url string, m wire.Message) error {
	return st.Send(&wire.Any{TypeURL: url, Value: wire.Marshal(m)})
}

// allowance is how much the client of an output stream is ready to take.
type allowance struct {
	mu   sync.Mutex
	more sync.Cond
	room int
	last bool // no more will be granted
	gone bool
}

// listen hears what the client grants.
func (w *allowance) listen(st *stream) {
	for {
		var any wire.Any
		var update wire.WindowUpdate
		err := st.Recv(&any)
		if err == nil && any.TypeURL == wire.WindowUpdateURL {
			err = wire.Unmarshal(any.Value, &update)
		}
		w.mu.Lock()
		w.room += max(int(update.Update), 0)
		// A client that has closed its side takes what it has granted, and no more.
		w.last = errors.Is(err, io.EOF)
		w.gone = err != nil && !w.last
		w.more.Broadcast()
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// wait gives the room that there is, as soon as there is any; 0 when there will
// be none.
func (w *allowance) wait() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.room == 0 && !w.last && !w.gone {
		w.more.Wait()
	}
	if w.gone {
		return 0
	}
	return w.room
}

func (w *allowance) use(n int) {
	w.mu.Lock()
	w.room -= n
	w.mu.Unlock()
}
