package events

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// socket is containerd's ttrpc socket.
type socket struct {
	path      string
	namespace string
	timeout   time.Duration
	memory    *keeper.Memory // nil without a keeper

	mu        sync.Mutex
	suspended bool
	client    *ttrpc.Client // nil until the first event, and after a failure
}

func (s *socket) forward(e *queued) error {
	client, fresh, err := s.connection()
	if err != nil {
		return err
	}
	client.Mark = e.number
	err = client.Call("containerd.services.events.ttrpc.v1.Events", "Forward",
		[]*wire.KeyValue{{Key: "containerd-namespace-ttrpc", Value: s.namespace}},
		s.timeout, &wire.ForwardRequest{Envelope: e.Envelope}, &wire.Empty{})
	var answer *ttrpc.Error
	switch {
	case err == nil, errors.As(err, &answer), errors.Is(err, ttrpc.ErrSuspended):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		// containerd has it, and will answer some time: on another connection it would be another
		// event.
		return err
	}
	client.Close()
	s.mu.Lock()
	s.client = nil
	s.mu.Unlock()
	if !fresh {
		// The connection is of a containerd that has gone; there may be a new one.
		return s.forward(e)
	}
	return err
}

func (s *socket) connection() (client *ttrpc.Client, fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspended {
		return nil, false, ttrpc.ErrSuspended
	}
	if s.client == nil {
		conn, err := ttrpc.Dial(s.path)
		if err != nil {
			return nil, false, err
		}
		s.client, fresh = ttrpc.NewClient(conn), true
		if s.memory != nil {
			if err := s.client.Keep(s.memory); err != nil {
				s.client.Close()
				s.client = nil
				return nil, false, err
			}
		}
	}
	return s.client, fresh, nil
}

func (s *socket) suspend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspended = true
	if s.client != nil {
		s.client.Suspend()
	}
}

func (s *socket) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspended = false
	if s.client != nil {
		s.client.Resume()
	}
}

func (s *socket) handover(h *wire.HandoverEvents, t *fds.Table) {
	if s.client != nil {
		s.client.Handover(h, t)
	}
}

func (s *socket) takeOver(h *wire.HandoverEvents, t *fds.Table) (err error) {
	s.suspended = true
	s.client, err = ttrpc.TakeOverClient(h, t)
	return err
}

// inherit takes up the connection of a shim that was killed. It gives the number of the event that
// was under way: the call goes on when that is forwarded next, and is otherwise over.
func (s *socket) inherit(t *fds.Table) (number uint64, err error) {
	s.client, number, err = ttrpc.InheritClient(s.memory, t, s.timeout)
	return number, err
}
