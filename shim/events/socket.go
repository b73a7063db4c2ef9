package events

import (
	"errors"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// socket is containerd's ttrpc socket.
type socket struct {
	path      string
	namespace string
	client    *ttrpc.Client // nil until the first event, and after a failure
}

func (s *socket) forward(envelope *wire.Envelope) error {
	fresh := s.client == nil
	if fresh {
		conn, err := ttrpc.Dial(s.path)
		if err != nil {
			return err
		}
		s.client = ttrpc.NewClient(conn)
	}
	err := s.client.Call("containerd.services.events.ttrpc.v1.Events", "Forward",
		[]*wire.KeyValue{{Key: "containerd-namespace-ttrpc", Value: s.namespace}},
		callTimeout, &wire.ForwardRequest{Envelope: envelope}, &wire.Empty{})
	var answer *ttrpc.Error
	if err == nil || errors.As(err, &answer) {
		return err
	}
	s.client.Close()
	s.client = nil
	if !fresh {
		// The connection is of a containerd that has gone; there may be a new one.
		return s.forward(envelope)
	}
	return err
}
