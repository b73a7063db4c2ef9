package ttrpc

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// held is a handler whose streams the test receives from, until end is closed.
type held struct {
	came chan *Stream
	end  chan struct{}
}

func (h *held) Serve(_ context.Context, s *Stream) error {
	h.came <- s
	select {
	case <-h.end:
		return nil
	case <-s.Halted():
		return ErrSuspended
	}
}

func (*held) Halt(*Stream)                               {}
func (*held) Handover(*Stream, *fds.Table) []byte        { return nil }
func (*held) TakeOver(*Stream, []byte, *fds.Table) error { return nil }

func streaming(m *keeper.Memory) (*Server, *held) {
	s, h := keptServer(m), &held{make(chan *Stream, 10), make(chan struct{})}
	s.RegisterStream("s", "Stream", h)
	return s, h
}

// peer is the client's side of a connection with a stream, and with another one: what has come on
// that tells that all before it has come.
type peer struct {
	t            *testing.T
	to           io.Writer
	stream, mark *Stream
}

// streamed begins to serve a connection.
func streamed(t *testing.T, m *keeper.Memory, ours, theirs *os.File) (*Server, *held, *peer) {
	t.Helper()
	s, h := streaming(m)
	c := s.newConn(ours, &wire.HandoverConn{})
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.connected.Add(1)
	s.read(c)
	s.mu.Unlock()
	p := &peer{t: t, to: theirs}
	p.write(1, typeRequest, flagRemoteOpen, &wire.Request{Service: "s", Method: "Stream"})
	p.stream = <-h.came
	p.write(3, typeRequest, flagRemoteOpen, &wire.Request{Service: "s", Method: "Stream"})
	p.mark = <-h.came
	return s, h, p
}

func (p *peer) write(stream uint32, kind, flags uint8, m wire.Message) {
	p.t.Helper()
	b, err := frame(stream, kind, flags, m)
	if err == nil {
		_, err = p.to.Write(b)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// say sends a word on the stream.
func (p *peer) say(word string) {
	p.t.Helper()
	p.write(1, typeData, 0, &wire.StreamInit{ID: word})
}

// marked waits until all that was sent has come.
func (p *peer) marked() {
	p.t.Helper()
	p.write(3, typeData, 0, &wire.StreamInit{ID: "mark"})
	if err := p.mark.Recv(new(wire.StreamInit)); err != nil {
		p.t.Fatal(err)
	}
}

func hears(t *testing.T, s *Stream, want string) {
	t.Helper()
	var got wire.StreamInit
	if err := s.Recv(&got); err != nil || got.ID != want {
		t.Fatalf("received %.40q, %v; want %.40q", got.ID, err, want)
	}
}

// stop has a server read no more, as if it were killed.
func stop(s *Server, conn *os.File) {
	conn.SetReadDeadline(longAgo)
	s.reading.Wait()
}

// streamOf is the stream of a server that has inherited it.
func streamOf(t *testing.T, s *Server) *Stream {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.all() {
		c.mu.Lock()
		stream := c.streams[1]
		c.mu.Unlock()
		if stream != nil {
			return stream
		}
	}
	t.Fatal("the stream is not inherited")
	return nil
}

// What a handler has done with is received no more when the shim is killed, and all else again, in
// its order; so is the end. Many small messages share few slots.
func TestKeptMessages(t *testing.T) {
	next := memories(t)
	ours, theirs := pair(t)
	s, _, p := streamed(t, next(), ours, theirs)
	const messages, done = 300, 100
	word := func(i int) string { return strconv.Itoa(i) + strings.Repeat("x", 200) }
	for i := range messages {
		p.say(word(i))
	}
	p.marked()
	if got := len(next().Pieces(keeper.Message)); got == 0 || got > 10 {
		t.Errorf("%d messages have %d slots", messages, got)
	}
	for i := range done {
		hears(t, p.stream, word(i))
		p.stream.Keep([]byte(strconv.Itoa(i)))
	}
	hears(t, p.stream, word(done)) // and is killed before it has done with that
	stop(s, ours)

	s, _ = streaming(next())
	ours = inheritBy(t, s, ours)
	after := streamOf(t, s)
	if got := string(after.kept.state); got != strconv.Itoa(done-1) {
		t.Errorf("the state is %q", got)
	}
	for i := done; i < messages; i++ {
		hears(t, after, word(i))
		after.Keep(nil)
	}
	if got := len(next().Pieces(keeper.Message)); got != 1 { // of the other stream
		t.Errorf("%d slots have messages", got)
	}
	s.Resume()
	p.say("more")
	hears(t, after, "more")
	p.write(1, typeData, flagRemoteClosed|flagNoData, &wire.Empty{})
	if err := after.Recv(new(wire.StreamInit)); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	stop(s, ours)

	s, _ = streaming(next())
	inheritBy(t, s, ours)
	after = streamOf(t, s)
	hears(t, after, "more")
	if err := after.Recv(new(wire.StreamInit)); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// A message that was kept, but not noted as read on its connection, is not there twice.
func TestMessagesReadAgain(t *testing.T) {
	next := memories(t)
	ours, theirs := pair(t)
	s, _, p := streamed(t, next(), ours, theirs)
	var c *serverConn
	for c = range s.conns {
	}
	before := *sys.LongWord(c.kept.room[offAt:])
	p.say("one")
	p.say("two")
	p.marked()
	hears(t, p.stream, "one")
	p.stream.Keep(nil)
	stop(s, ours)
	*sys.LongWord(c.kept.room[offAt:]) = before

	s, _ = streaming(next())
	inheritBy(t, s, ours)
	s.Resume()
	p.say("three")
	after := streamOf(t, s)
	hears(t, after, "two")
	hears(t, after, "three")
}

// A stream outlives its connection, with what had come on it, and leaves nothing when it ends.
func TestStreamOfAPeerThatIsGone(t *testing.T) {
	next := memories(t)
	ours, theirs := pair(t)
	s, _, p := streamed(t, next(), ours, theirs)
	p.say("one")
	p.say("two")
	theirs.Close()
	s.reading.Wait()
	hears(t, p.stream, "one")
	p.stream.Keep(nil)

	m := next()
	s, h := streaming(m)
	listener, err := os.Open(os.DevNull) // anything
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	n, err := fds.Dup(listener)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Inherit(uint32(n), fds.New()); err != nil {
		t.Fatal(err)
	}
	defer s.listener.Close()
	if len(s.conns) != 0 || len(s.gone) != 1 {
		t.Errorf("%d connections, and %d that are gone", len(s.conns), len(s.gone))
	}
	after := streamOf(t, s)
	hears(t, after, "two")
	if err := after.Recv(new(wire.StreamInit)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("at the end: %v", err)
	}
	close(h.end)
	s.Resume()
	wait.Until(t, "nothing to be left", func() bool {
		s.mu.Lock()
		left := len(s.gone)
		s.mu.Unlock()
		for _, kind := range []byte{keeper.Socket, keeper.Message, keeper.Connection, keeper.Answers} {
			left += len(m.Pieces(kind))
		}
		return left == 0
	})
}

// A stream whose peer has sent too much is over for the next shim, too.
func TestTooMuchIsKept(t *testing.T) {
	next := memories(t)
	ours, theirs := pair(t)
	s, _, p := streamed(t, next(), ours, theirs)
	for range queueLimit/(64<<10) + 1 {
		p.say(strings.Repeat("x", 64<<10))
	}
	p.marked()
	stop(s, ours)
	if got := len(next().Pieces(keeper.Message)); got != 1 {
		t.Errorf("%d slots have messages", got)
	}

	s, _ = streaming(next())
	inheritBy(t, s, ours)
	if err := streamOf(t, s).Recv(new(wire.StreamInit)); !errors.Is(err, errTooMuch) {
		t.Errorf("after too much: %v", err)
	}
}

// A connection that a shim had accepted, and was killed before it could note it, is served by the
// next one; nothing else is taken for one.
func TestAdopt(t *testing.T) {
	next := memories(t)
	dup := func(f *os.File) int {
		t.Helper()
		n, err := fds.Dup(f)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	listen := func(name string) (l *os.File, path string) {
		t.Helper()
		path = filepath.Join(t.TempDir(), name)
		l, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l, path
	}
	accepted := func(l *os.File, path string) (c *Client, fd int) {
		t.Helper()
		c = dialed(t, path)
		conn, err := Accept(l)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return c, dup(conn)
	}
	l, path := listen("s")
	client, fd := accepted(l, path)

	s := keptServer(next())
	s.Register("s", map[string]Handler{"State": func(context.Context, []byte) (wire.Message, error) { return &wire.StateResponse{ID: "it"}, nil }})
	table := fds.New()
	if err := s.Inherit(uint32(dup(l)), table); err != nil {
		t.Fatal(err)
	}
	_, debug := accepted(listen("debug"))
	one, other := pair(t)
	defer one.Close()
	for name, fd := range map[string]int{"a connection of another socket": debug, "a client's": dup(client.conn), "a socketpair's": dup(other), "no socket": dup(os.Stdin)} {
		if s.Adopt(uint32(fd), table) {
			t.Errorf("%s is taken for a connection", name)
		} else {
			unix.Close(fd)
		}
	}
	if !s.Adopt(uint32(fd), table) {
		t.Fatal("the connection is not taken")
	}
	pieces := next().Pieces(keeper.Connection)
	if len(pieces) != 1 || inherited(pieces[0]).FD != uint32(fd) {
		t.Errorf("%d connections are noted", len(pieces))
	}
	s.Resume()
	var r wire.StateResponse
	if err := client.Call("s", "State", nil, time.Minute, &wire.Empty{}, &r); err != nil || r.ID != "it" {
		t.Errorf("%q, %v", r.ID, err)
	}
	client.Close()
	s.Close()
}
