package dbus

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// told keeps what a Handler is told.
type told struct {
	signals chan *Signal
	closed  chan struct{}
}

func newTold() *told { return &told{make(chan *Signal, 16), make(chan struct{})} }

func (t *told) Signal(s *Signal) { t.signals <- s }
func (t *told) Closed()          { close(t.closed) }

// peer is the other side of a connection, which does what a test says.
func peer(t *testing.T, serve func(in *bufio.Reader, conn net.Conn)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		serve(bufio.NewReader(conn), conn)
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return path
}

// greet takes the handshake.
func greet(in *bufio.Reader, conn net.Conn) {
	for range 3 { // NUL and AUTH, DATA, BEGIN
		_, _ = in.ReadString('\n')
	}
	_, _ = io.WriteString(conn, "DATA\r\nOK 0123\r\n")
}

func say(conn net.Conn, m message) {
	text, err := m.encode()
	if err != nil {
		panic(err)
	}
	_, _ = conn.Write(text)
}

func dial(t *testing.T, path string) (*Conn, *told) {
	t.Helper()
	h := newTold()
	c, err := Dial(context.Background(), path, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, h
}

var ping = Call{Destination: "a.b", Path: "/c", Interface: "d.e", Member: "Ping", Signature: "s", Args: []any{"x"}}

func TestCallsSignalsAndErrors(t *testing.T) {
	path := peer(t, func(in *bufio.Reader, conn net.Conn) {
		greet(in, conn)
		var asked []*message
		for range 2 {
			m, err := readMessage(in)
			if err != nil {
				return
			}
			asked = append(asked, m)
		}
		// An answer to nothing and a signal first, then the answers the wrong way round.
		say(conn, message{kind: kindReturn, serial: 1, reply: 999})
		say(conn, message{kind: kindSignal, serial: 2, path: "/p", iface: "i.j", member: "News", signature: "u", body: []any{uint32(1)}})
		say(conn, message{kind: kindError, serial: 3, reply: asked[1].serial, errorName: "x.Bad", signature: "s", body: []any{"bad"}})
		say(conn, message{kind: kindReturn, serial: 4, reply: asked[0].serial, signature: "s", body: []any{"pong " + asked[0].body[0].(string)}})
		_, _ = readMessage(in)
	})
	c, h := dial(t, path)
	ctx := context.Background()
	first, err := c.Go(ctx, ping)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Call(ctx, ping)
	var e *Error
	if !errors.As(err, &e) || e.Name != "x.Bad" || e.Error() != "bad" {
		t.Errorf("%v", err)
	}
	if body, err := first.Wait(ctx); err != nil || body[0] != "pong x" {
		t.Errorf("%v %v", body, err)
	}
	if s := <-h.signals; s.Member != "News" || s.Path != "/p" || s.Interface != "i.j" || s.Body[0] != uint32(1) {
		t.Errorf("%+v", s)
	}
	if !c.Connected() {
		t.Error("not connected")
	}
}

func TestTheOtherSideGoes(t *testing.T) {
	path := peer(t, func(in *bufio.Reader, conn net.Conn) {
		greet(in, conn)
		_, _ = readMessage(in)
	})
	c, h := dial(t, path)
	if _, err := c.Call(context.Background(), ping); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	<-h.closed
	if _, err := c.Call(context.Background(), ping); !errors.Is(err, ErrClosed) || c.Connected() {
		t.Errorf("%v", err)
	}
}

func TestNonsenseEndsTheConnection(t *testing.T) {
	path := peer(t, func(in *bufio.Reader, conn net.Conn) {
		greet(in, conn)
		_, _ = io.WriteString(conn, "this is not a message at all")
		_, _ = readMessage(in)
	})
	_, h := dial(t, path)
	<-h.closed
}

func TestTimeIsUp(t *testing.T) {
	release := make(chan struct{})
	path := peer(t, func(in *bufio.Reader, conn net.Conn) {
		greet(in, conn)
		<-release
	})
	defer close(release)
	c, _ := dial(t, path)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := c.Call(ctx, ping); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	// It can also be up before the call is sent.
	past, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer cancel()
	if _, err := c.Call(past, ping); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before the call: %v", err)
	}
	if len(c.waiting) != 0 {
		t.Error("a caller still waits")
	}
}

func TestHandshakeRefused(t *testing.T) {
	path := peer(t, func(in *bufio.Reader, conn net.Conn) {
		_, _ = in.ReadString('\n')
		_, _ = io.WriteString(conn, "REJECTED KERBEROS\r\n")
		_, _ = in.ReadString('\n')
	})
	if _, err := Dial(context.Background(), path, newTold()); err == nil {
		t.Error("connected")
	}
	silent := make(chan struct{})
	defer close(silent)
	path = peer(t, func(*bufio.Reader, net.Conn) { <-silent })
	ctx, cancel := context.WithCancel(context.Background())
	go cancel()
	if _, err := Dial(ctx, path, newTold()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
