package events

import (
	"errors"
	"sync"
	"time"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
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

// forwarder takes one event to containerd. A *ttrpc.Error is its refusal; after any other error the event is tried again.
type forwarder interface {
	forward(*wire.Envelope) error
}

// Publisher sends events to containerd.
type Publisher struct {
	to        forwarder
	namespace string
	log       func(string)

	mu     sync.Mutex
	queue  []*wire.Envelope
	more   chan struct{} // has an element when the queue may not be empty
	closed chan struct{}
	empty  chan struct{} // closed when the sender has left
}

// New starts a publisher for the socket at an address.
func New(address, namespace string, log func(string)) *Publisher {
	return start(&socket{path: ttrpc.Path(address), namespace: namespace}, namespace, log)
}

// NewByBinary starts a publisher that has containerd's own program send each event, as shims did before there was a socket
// for them: the contract of Runtime v2 has both.
func NewByBinary(path, address, namespace string, r *reaper.Reaper, log func(string)) *Publisher {
	return start(&binary{path: path, address: address, reaper: r, most: mostFailures}, namespace, log)
}

func start(to forwarder, namespace string, log func(string)) *Publisher {
	p := &Publisher{
		to: to, namespace: namespace, log: log,
		more: make(chan struct{}, 1), closed: make(chan struct{}), empty: make(chan struct{}),
	}
	go p.send()
	return p
}

// Publish queues an event. It never waits.
func (p *Publisher) Publish(e wire.Event) {
	envelope := &wire.Envelope{
		Timestamp: wire.Time(time.Now()),
		Namespace: p.namespace,
		Topic:     e.Topic(),
		Event:     &wire.Any{TypeURL: e.TypeURL(), Value: wire.Marshal(e)},
	}
	p.mu.Lock()
	p.queue = append(p.queue, envelope)
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

func (p *Publisher) head() *wire.Envelope {
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
	p.queue[0] = nil
	if p.queue = p.queue[1:]; len(p.queue) == 0 {
		p.queue = nil // let go of the array
	}
}

func (p *Publisher) send() {
	defer close(p.empty)
	for {
		envelope := p.head()
		if envelope == nil {
			select {
			case <-p.more:
				continue
			case <-p.closed:
			}
			if p.head() == nil {
				return
			}
			continue
		}
		p.deliver(envelope)
		p.drop()
	}
}

// deliver tries until containerd has taken the event, or refused it for good.
func (p *Publisher) deliver(envelope *wire.Envelope) {
	pause, refused, told := firstPause, 0, false
	for {
		err := p.to.forward(envelope)
		if err == nil {
			return
		}
		var answer *ttrpc.Error
		if errors.As(err, &answer) {
			if refused++; refused == refusals || answer.Code == ttrpc.InvalidArgument {
				p.log("containerd refuses event " + envelope.Topic + ": " + err.Error())
				return
			}
		} else if !told {
			p.log("publish event " + envelope.Topic + ", will be tried again: " + err.Error())
			told = true
		}
		// There is nothing to be woken by: a socket that is not served yet, or not
		// there, cannot be polled.
		time.Sleep(pause)
		pause = min(2*pause, longestPause)
	}
}
