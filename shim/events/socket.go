package events

import (
	"errors"
	"sync"

	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// socket is containerd's ttrpc socket.
type socket struct {
	path      string
	namespace string

	mu        sync.Mutex
	suspended bool
	client    *ttrpc.Client // nil until the first event, and after a failure
}

func (s *socket) forward(envelope *wire.Envelope) error {
	client, fresh, err := s.connection()
	if err != nil {
		return err
	}
	err = client.Call("containerd.services.events.ttrpc.v1.Events", "Forward",
		[]*wire.KeyValue{{Key: "containerd-namespace-ttrpc", Value: s.namespace}},
		callTimeout, &wire.ForwardRequest{Envelope: envelope}, &wire.Empty{})
	var answer *ttrpc.Error
	if err == nil || errors.As(err, &answer) || errors.Is(err, ttrpc.ErrSuspended) {
		return err
	}
	client.Close()
	s.mu.Lock()
	s.client = nil
	s.mu.Unlock()
	if !fresh {
		// The connection is of a containerd that has gone; there may be a new one.
		return s.forward(envelope)
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
