package events

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
	"github.com/berth-runtime/berth/shim/reaper"
)

const (
	callTimeout = 5 * time.Second
	// The pauses between attempts while containerd is away.
	firstPause, longestPause = 20 * time.Millisecond, 2 * time.Second
	// refusals is how often containerd may answer an event with an error until
	// that event is dropped, so that it does not hold up the rest for ever.
	refusals = 5
)

// forwarder takes one event to containerd. A *ttrpc.Error is its refusal; after any other error the
// event is tried again.
type forwarder interface {
	forward(*queued) error
	// suspend has forward return ttrpc.ErrSuspended, if it can, until resume; then the same event
	// is to be forwarded again.
	suspend()
	resume()
	handover(*wire.HandoverEvents, *fds.Table)
	takeOver(*wire.HandoverEvents, *fds.Table) error
}

// queued is an event that containerd does not have yet.
type queued struct {
	*wire.Envelope
	slot   *keeper.Slot // nil without a keeper
	number uint64       // with one
}

// Publisher sends events to containerd.
type Publisher struct {
	to        forwarder
	namespace string
	log       func(string)

	mu     sync.Mutex
	queue  []*queued
	memory *keeper.Memory
	number uint64        // of the next event that is kept
	more   chan struct{} // has an element when the queue may not be empty
	closed chan struct{}
	empty  chan struct{} // closed when the sender has left

	// refused is how often the first of the queue has been, and is the sender's.
	refused int
	// stop is closed to have the sender stop, and stopped by it; both are made anew when it goes
	// on.
	stop, stopped chan struct{}
	// stopping is set from Suspend to Resume.
	stopping atomic.Bool
}

// New makes a publisher for the socket at an address. It begins to send when Resume is called.
func New(address, namespace string, log func(string)) *Publisher {
	return newPublisher(&socket{path: ttrpc.Path(address), namespace: namespace, timeout: callTimeout}, namespace, log)
}

// NewByBinary makes a publisher that has containerd's own program send each event, as shims did
// before there was a socket for them: the contract of Runtime v2 has both.
func NewByBinary(path, address, namespace string, r *reaper.Reaper, log func(string)) *Publisher {
	return newPublisher(&binary{path: path, address: address, reaper: r, most: mostFailures}, namespace, log)
}

func newPublisher(to forwarder, namespace string, log func(string)) *Publisher {
	return &Publisher{
		to: to, namespace: namespace, log: log,
		more: make(chan struct{}, 1), closed: make(chan struct{}), empty: make(chan struct{}),
	}
}

// Resume begins to send, or goes on where Suspend has stopped it.
func (p *Publisher) Resume() {
	p.to.resume()
	p.stop, p.stopped = make(chan struct{}), make(chan struct{})
	go p.send(p.stop, p.stopped)
	p.stopping.Store(false)
}

// Suspend stops the sending. It is not stopped, and Resume is not to be called, if it returns
// false: what is being done did not end in time, or has not since the last time.
func (p *Publisher) Suspend(limit time.Duration) bool {
	if !p.stopping.CompareAndSwap(false, true) {
		return false
	}
	p.to.suspend()
	close(p.stop)
	select {
	case <-p.stopped:
		return true
	case <-time.After(limit):
	}
	// It stops some time or other, and is then to go on.
	stopped := p.stopped
	go func() {
		<-stopped
		p.Resume()
	}()
	return false
}

// Handover writes a suspended publisher down.
func (p *Publisher) Handover(t *fds.Table) *wire.HandoverEvents {
	h := &wire.HandoverEvents{Refused: uint32(p.refused)}
	for _, q := range p.queue {
		h.Queue = append(h.Queue, q.Envelope)
	}
	p.to.handover(h, t)
	return h
}

// TakeOver is for a new publisher, that goes on where Handover has left off.
func (p *Publisher) TakeOver(h *wire.HandoverEvents, t *fds.Table) error {
	if h == nil {
		return nil
	}
	p.refused = int(h.Refused)
	for _, e := range h.Queue {
		p.queue = append(p.queue, &queued{Envelope: e})
	}
	return p.to.takeOver(h, t)
}

// Keep has events kept in the keeper's memory until containerd has them.
func (p *Publisher) Keep(m *keeper.Memory) {
	p.memory = m
	if s, ok := p.to.(*socket); ok {
		s.memory = m
	}
}

// Inherit is for a new publisher, that goes on where a shim that was killed has left off.
func (p *Publisher) Inherit(t *fds.Table) (err error) {
	for _, piece := range p.memory.Pieces(keeper.Event) {
		e := new(wire.KeptEvent)
		if wire.Unmarshal(piece.Data, e) == nil && e.Envelope != nil {
			p.queue = append(p.queue, &queued{e.Envelope, piece.Slot, e.Number})
			p.number = max(p.number, e.Number)
		}
	}
	slices.SortFunc(p.queue, func(a, b *queued) int { return cmp.Compare(a.number, b.number) })
	s, ok := p.to.(*socket)
	if !ok {
		return nil
	}
	number, err := s.inherit(t)
	// What is told of next is not to be taken for that one.
	p.number = max(p.number, number)
	if s.client != nil && (len(p.queue) == 0 || p.queue[0].number != number) {
		s.client.Forget()
	}
	return err
}

// Publish queues an event. It never waits. With a keeper, the changes are made in its memory at the
// same instant.
func (p *Publisher) Publish(e wire.Event, with ...keeper.Change) {
	envelope := &wire.Envelope{
		Timestamp: wire.Time(time.Now()),
		Namespace: p.namespace,
		Topic:     e.Topic(),
		Event:     &wire.Any{TypeURL: e.TypeURL(), Value: wire.Marshal(e)},
	}
	p.mu.Lock()
	q := &queued{Envelope: envelope, slot: p.memory.Slot()}
	if q.slot != nil {
		p.number++
		q.number = p.number
		data := wire.Marshal(&wire.KeptEvent{Number: p.number, Envelope: envelope})
		p.memory.Commit(append(with, keeper.Change{Slot: q.slot, Kind: keeper.Event, Data: data})...)
	}
	p.queue = append(p.queue, q)
	p.mu.Unlock()
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// Close stops the publisher when its queue is empty or the time is over. It
// must be called once, after the last Publish.
func (p *Publisher) Close(limit time.Duration) {
	close(p.closed)
	select {
	case <-p.empty:
	case <-time.After(limit):
		p.log("events were not accepted by containerd, and are lost")
	}
}

func (p *Publisher) head() *queued {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return nil
	}
	return p.queue[0]
}

func (p *Publisher) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue[0].slot.Drop()
	p.queue[0] = nil
	if p.queue = p.queue[1:]; len(p.queue) == 0 {
		p.queue = nil // let go of the array
	}
}

func (p *Publisher) send(stop, stopped chan struct{}) {
	for {
		select {
		case <-stop:
			close(stopped)
			return
		default:
		}
		e := p.head()
		if e == nil {
			select {
			case <-p.more:
				continue
			case <-stop:
				close(stopped)
				return
			case <-p.closed:
			}
			if p.head() == nil {
				close(p.empty)
				return
			}
			continue
		}
		if !p.deliver(e, stop) {
			close(stopped)
			return
		}
		p.refused = 0
		p.drop()
	}
}

// deliver tries until containerd has taken the event, or refused it for good. It returns false if
// it was stopped.
func (p *Publisher) deliver(e *queued, stop chan struct{}) bool {
	pause, told := firstPause, false
	for {
		err := p.to.forward(e)
		if err == nil {
			return true
		}
		var answer *ttrpc.Error
		switch {
		case errors.Is(err, ttrpc.ErrSuspended):
			<-stop
			return false
		case errors.As(err, &answer):
			if p.refused++; p.refused == refusals || answer.Code == ttrpc.InvalidArgument {
				p.log("containerd refuses event " + e.Topic + ": " + err.Error())
				return true
			}
		case !told:
			p.log("publish event " + e.Topic + ", will be tried again: " + err.Error())
			told = true
		}
		// There is nothing to be woken by: a socket that is not served yet, or not
		// there, cannot be polled.
		select {
		case <-time.After(pause):
		case <-stop:
			return false
		}
		pause = min(2*pause, longestPause)
	}
}
