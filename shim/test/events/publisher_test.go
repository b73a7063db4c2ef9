package events_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	taskevents "github.com/containerd/containerd/api/events"
	forward "github.com/containerd/containerd/api/services/ttrpc/events/v1"
	"github.com/containerd/ttrpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/shim/events"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// daemon is containerd's side, made of containerd's own code.
type daemon struct {
	mu     sync.Mutex
	got    []string
	refuse map[string]codes.Code
	stop   func()
	last   time.Time // of the last event
	again  int       // how many may come twice: one for each connection that was broken
}

// listener keeps the connections that it has given out, so that they can be
// ended as they are when a daemon is killed. The server's own Close only asks
// for that: it may still take a request that comes after it, and not answer.
type listener struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.conns = append(l.conns, conn)
		l.mu.Unlock()
	}
	return conn, err
}

func (l *listener) kill() {
	l.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		conn.Close()
	}
}

func (d *daemon) Forward(_ context.Context, r *forward.ForwardRequest) (*emptypb.Empty, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var e taskevents.TaskExit
	if err := r.Envelope.Event.UnmarshalTo(&e); err != nil {
		return nil, err
	}
	if code, no := d.refuse[e.ContainerID]; no {
		return nil, status.Error(code, "no")
	}
	if r.Envelope.Namespace != "ns" || r.Envelope.Topic != "/tasks/exit" || r.Envelope.Timestamp.AsTime().IsZero() {
		return nil, status.Error(codes.InvalidArgument, "bad envelope")
	}
	at := r.Envelope.Timestamp.AsTime()
	if n := len(d.got); n > 0 && d.got[n-1] == e.ContainerID && d.last.Equal(at) && d.again > 0 {
		d.again--
		return &emptypb.Empty{}, nil
	}
	d.got, d.last = append(d.got, e.ContainerID), at
	return &emptypb.Empty{}, nil
}

func (d *daemon) serve(t *testing.T, path string) {
	t.Helper()
	inner, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{Listener: inner}
	s, err := ttrpc.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	forward.RegisterTTRPCEventsService(s, d)
	go s.Serve(context.Background(), l)
	d.stop = func() {
		l.kill()
		s.Close()
		d.mu.Lock()
		d.again++
		d.mu.Unlock()
	}
}

// wait waits until n events have come.
func (d *daemon) wait(t *testing.T, n int) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("%d events", n), func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.got) >= n
	})
}

func (d *daemon) check(t *testing.T, n int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.got) != n {
		t.Fatalf("got %d events, want %d: %v", len(d.got), n, d.got)
	}
	for i, id := range d.got {
		if id != strconv.Itoa(i) {
			t.Fatalf("event %d is %s: %v", i, id, d.got)
		}
	}
}

func exit(i int) wire.Event { return &wire.TaskExit{ContainerID: strconv.Itoa(i)} }

func TestOrderIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	d := &daemon{}
	d.serve(t, path)
	defer d.stop()
	p := events.New("unix://"+path, "ns", func(s string) { t.Log(s) })
	p.Resume()
	for i := range 500 {
		p.Publish(exit(i))
	}
	p.Close(time.Minute)
	d.check(t, 500)
}

// An event whose taking the daemon could not answer any more comes again, with the same timestamp;
// nothing else comes twice.
func TestNothingIsLostOrDoubledOverARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	d := &daemon{}
	p := events.New(path, "ns", func(s string) { t.Log(s) })
	p.Resume()
	n := 0
	publish := func(k int) {
		for range k {
			p.Publish(exit(n))
			n++
		}
	}
	publish(10) // containerd is not there yet
	for range 3 {
		d.serve(t, path)
		publish(20)
		d.wait(t, n)
		d.stop()
		publish(20)
	}
	d.serve(t, path)
	defer d.stop()
	p.Close(time.Minute)
	d.check(t, n)
}

func TestRefusedEventDoesNotHoldUpTheRest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	d := &daemon{refuse: map[string]codes.Code{"bad": codes.InvalidArgument, "worse": codes.Unknown}}
	d.serve(t, path)
	defer d.stop()
	p := events.New(path, "ns", func(s string) { t.Log(s) })
	p.Resume()
	p.Publish(exit(0))
	p.Publish(&wire.TaskExit{ContainerID: "bad"})
	p.Publish(exit(1))
	p.Publish(&wire.TaskExit{ContainerID: "worse"})
	p.Publish(exit(2))
	p.Close(time.Minute)
	d.check(t, 3)
}

func TestCloseDoesNotWaitForEver(t *testing.T) {
	p := events.New(filepath.Join(t.TempDir(), "nobody"), "ns", func(string) {})
	p.Resume()
	p.Publish(exit(0))
	p.Close(50 * time.Millisecond) // or the test times out
}
