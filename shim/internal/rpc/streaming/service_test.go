package streaming

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// serve gives the service, and the path of its socket.
func serve(t *testing.T) (*Service, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := ttrpc.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s := New()
	server := ttrpc.NewServer(func(text string) { t.Log(text) })
	s.Register(server)
	done := make(chan error)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s, path
}

// client is a client's side of one stream, made of bare frames so that it can misbehave.
type client struct {
	t    *testing.T
	conn net.Conn
}

// The kinds and flags of a frame.
const (
	request, data         = 1, 3
	closed, open, nothing = 1, 2, 4
)

func dial(t *testing.T, path, id string) *client {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	c := &client{t, conn}
	c.frame(request, open, &wire.Request{Service: "containerd.services.streaming.v1.Streaming", Method: "Stream"})
	c.send(wire.StreamInitURL, &wire.StreamInit{ID: id})
	return c
}

func (c *client) frame(kind, flags byte, m wire.Message) {
	c.t.Helper()
	var body []byte
	if m != nil {
		body = wire.Marshal(m)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = append(binary.BigEndian.AppendUint32(b, 1), kind, flags)
	if _, err := c.conn.Write(append(b, body...)); err != nil {
		c.t.Error(err)
	}
}

func (c *client) send(url string, m wire.Message) {
	c.t.Helper()
	c.frame(data, 0, &wire.Any{TypeURL: url, Value: wire.Marshal(m)})
}

func (c *client) grant(n int32) { c.send(wire.WindowUpdateURL, &wire.WindowUpdate{Update: n}) }

// halfClose says that nothing more will be sent.
func (c *client) halfClose() { c.frame(data, closed|nothing, nil) }

// next is the next message; ok is false when the stream has ended, and for any other answer than
// data.
func (c *client) next() (any wire.Any, ok bool) {
	c.t.Helper()
	var head [10]byte
	if _, err := io.ReadFull(c.conn, head[:]); err != nil {
		c.t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c.conn, body); err != nil {
		c.t.Fatal(err)
	}
	if head[8] != data || head[9]&nothing != 0 {
		return any, false
	}
	if err := wire.Unmarshal(body, &any); err != nil {
		c.t.Fatal(err)
	}
	return any, true
}

// opened waits for the answer that the stream is there.
func (c *client) opened() {
	c.t.Helper()
	if any, ok := c.next(); !ok || any.TypeURL != wire.EmptyURL {
		c.t.Fatalf("not opened: %+v", any)
	}
}

// all reads what comes until the end.
func (c *client) all() string {
	c.t.Helper()
	var got strings.Builder
	for {
		any, ok := c.next()
		if !ok {
			return got.String()
		}
		var d wire.Data
		if err := wire.Unmarshal(any.Value, &d); err != nil {
			c.t.Fatal(err)
		}
		got.Write(d.Data)
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// lead waits for a stream, and has it take the end of a pipe.
func lead(t *testing.T, s *Service, take func(string, *os.File) ([]keeper.Change, func()), id string, end *os.File) {
	t.Helper()
	if err := s.Await(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	_, begin := take(id, end)
	begin()
}

func outputOf(t *testing.T, s *Service, id string) (container *os.File) {
	t.Helper()
	read, write := pipe(t)
	lead(t, s, s.Output, id, read)
	write.SetDeadline(time.Now().Add(20 * time.Second))
	return write
}

// A client that has granted something and closes its side gets that much, and then the end. Before,
// what the container wrote next waited for ever.
func TestHalfClosedAfterAGrant(t *testing.T) {
	for _, granted := range []string{"", "abc"} {
		s, path := serve(t)
		c := dial(t, path, "out")
		c.opened()
		if granted != "" {
			c.grant(int32(len(granted)))
		}
		c.halfClose()
		container := outputOf(t, s, "out")
		var err error
		for err == nil { // until nobody reads any more
			_, err = container.Write([]byte("abcdef"))
		}
		if os.IsTimeout(err) {
			t.Errorf("granted %q: the container's write waits", granted)
		}
		if got := c.all(); got != granted {
			t.Errorf("granted %q, got %q", granted, got)
		}
	}
}

func TestNoMoreThanWasGranted(t *testing.T) {
	s, path := serve(t)
	c := dial(t, path, "out")
	c.opened()
	container := outputOf(t, s, "out")
	if _, err := container.WriteString("abcdef"); err != nil {
		t.Fatal(err)
	}
	container.Close()
	for _, want := range []string{"abc", "de", "f"} {
		c.grant(int32(len(want)))
		any, _ := c.next()
		var d wire.Data
		if err := wire.Unmarshal(any.Value, &d); err != nil || string(d.Data) != want {
			t.Errorf("got %q, %v, want %q", d.Data, err, want)
		}
	}
	if got := c.all(); got != "" {
		t.Errorf("and then %q", got)
	}
}

// A grant below zero grants nothing, and takes nothing away.
func TestGrantOfLessThanNothing(t *testing.T) {
	s, path := serve(t)
	c := dial(t, path, "out")
	c.opened()
	c.grant(4)
	c.grant(-1 << 31)
	c.halfClose()
	container := outputOf(t, s, "out")
	if _, err := container.WriteString("abcd"); err != nil {
		t.Fatal(err)
	}
	container.Close()
	if got := c.all(); got != "abcd" {
		t.Errorf("got %q", got)
	}
}

// When the client is gone, the container's pipe has no reader any more.
func TestClientIsGone(t *testing.T) {
	s, path := serve(t)
	c := dial(t, path, "out")
	c.opened()
	container := outputOf(t, s, "out")
	c.conn.Close()
	var err error
	for err == nil {
		_, err = container.Write(make([]byte, 4096))
	}
	if os.IsTimeout(err) {
		t.Error("the container's write waits")
	}
}

func TestInput(t *testing.T) {
	s, path := serve(t)
	c := dial(t, path, "in")
	c.opened()
	read, write := pipe(t)
	lead(t, s, s.Input, "in", write)
	if any, ok := c.next(); !ok || any.TypeURL != wire.WindowUpdateURL {
		t.Fatalf("no room is granted: %+v", any)
	}
	c.send(wire.DataURL, &wire.Data{Data: []byte("line\n")})
	c.halfClose()
	if got, err := io.ReadAll(read); err != nil || string(got) != "line\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

// What a client has sent before it went is the process's, whenever that reads it.
func TestInputOfAClientThatIsGone(t *testing.T) {
	s, path := serve(t)
	c := dial(t, path, "in")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	lead(t, s, s.Input, "in", w)
	const pieces = 10 // more than the pipe takes
	want := ""
	for i := range pieces {
		part := strings.Repeat(string(rune('a'+i)), 20<<10)
		want += part
		c.send(wire.DataURL, &wire.Data{Data: []byte(part)})
	}
	c.conn.Close()
	time.Sleep(50 * time.Millisecond)
	if got, err := io.ReadAll(r); err != nil || string(got) != want {
		t.Errorf("%d bytes of %d have come: %v", len(got), len(want), err)
	}
}

func TestStopOfAnInput(t *testing.T) {
	s, path := serve(t)
	c := dial(t, path, "in")
	c.opened()
	read, write := pipe(t)
	lead(t, s, s.Input, "in", write)
	s.Stop("in")
	if got, err := io.ReadAll(read); err != nil || len(got) > 0 {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestIDIsTaken(t *testing.T) {
	_, path := serve(t)
	dial(t, path, "twice").opened()
	if any, ok := dial(t, path, "twice").next(); ok {
		t.Errorf("opened: %+v", any)
	}
}

func TestNotWaitedForLongerThanAsked(t *testing.T) {
	s := New()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Await(ctx, "nobody"); err == nil {
		t.Error("a stream that nobody has opened")
	}
}
