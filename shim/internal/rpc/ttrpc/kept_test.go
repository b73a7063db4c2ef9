package ttrpc

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// memories gives what each shim sees of one memory, the next whenever one is killed.
func memories(t *testing.T) (next func() *keeper.Memory) {
	t.Helper()
	f, err := keeper.Create()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return func() *keeper.Memory {
		t.Helper()
		m, err := keeper.Map(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

func requestFrame(t *testing.T, stream uint32, method string) []byte {
	t.Helper()
	b, err := frame(stream, typeRequest, 0, &wire.Request{Service: "s", Method: method})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pair is a connection, nonblocking as all are.
func pair(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	p, err := socketpair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p[1].Close() })
	return p[0], p[1]
}

// inherit makes the server that comes after the one of a connection, whose descriptor it finds by
// its number.
func inherit(t *testing.T, m *keeper.Memory, conn *os.File) *Server {
	t.Helper()
	s := keptServer(m)
	inheritBy(t, s, conn)
	return s
}

// inheritBy does so for a server that has handlers.
func inheritBy(t *testing.T, s *Server, conn *os.File) (same *os.File) {
	t.Helper()
	table := fds.New()
	n := int(table.Number(conn))
	other, err := fds.Dup(conn)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := unix.Dup3(other, n, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := s.Inherit(uint32(other), fds.New()); err != nil { // anything for a listener
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.listener.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.conns {
			c.file.Close()
		}
	})
	for c := range s.conns {
		same = c.file
	}
	return same
}

// keptServer is a server of one connection.
func keptServer(m *keeper.Memory) *Server {
	s := NewServer(func(string) {})
	s.Keep(m)
	return s
}

// Of requests that have come in one piece, those that were noted are read no more, and of the rest
// nothing is lost.
func TestRequestsThatCameTogether(t *testing.T) {
	next := memories(t)
	ours, theirs := pair(t)
	s := keptServer(next())
	c := s.newConn(ours, &wire.HandoverConn{})
	third := requestFrame(t, 5, "Three")
	whole := append(append(requestFrame(t, 1, "One"), requestFrame(t, 3, "Two")...), third[:len(third)-3]...)
	if _, err := theirs.Write(whole); err != nil {
		t.Fatal(err)
	}
	for _, stream := range []uint32{1, 3} {
		h, _, err := c.in.next()
		if err != nil || h.stream != stream {
			t.Fatalf("stream %d, %v", h.stream, err)
		}
		c.kept.note(&call{conn: c, stream: stream, service: "s", method: "Wait"}, len(c.in.buf))
	}

	after := inherit(t, next(), ours)
	for c := range after.conns {
		if got := c.in.buf; !bytes.Equal(got, third[:len(third)-3]) {
			t.Errorf("%d bytes are read again, want %d", len(got), len(third)-3)
		}
		if len(c.waiting) != 2 || c.last != 3 {
			t.Errorf("%d calls wait, the last stream is %d", len(c.waiting), c.last)
		}
	}
	if len(after.conns) != 1 {
		t.Errorf("%d connections", len(after.conns))
	}
}

// An answer that was written in part is completed.
func TestHalfAnAnswer(t *testing.T) {
	next := memories(t)
	ours, theirs := pair(t)
	c := keptServer(next()).newConn(ours, &wire.HandoverConn{})
	answer := []byte(strings.Repeat("0123456789", 100_000)) // more than a socket has room for
	sent := make(chan error)
	go func() { sent <- c.send(answer) }()
	some := []unix.PollFd{{Fd: int32(fds.New().Number(theirs)), Events: unix.POLLIN}}
	for n := 0; n != 1; n, _ = unix.Poll(some, 1000) {
	}
	ours.SetWriteDeadline(longAgo)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	rest := len(c.keptOut.rest())
	if rest == 0 || rest == len(answer) {
		t.Fatalf("%d of %d bytes are left", rest, len(answer))
	}

	after := inherit(t, next(), ours)
	for c := range after.conns {
		c.file.SetDeadline(time.Time{})
		go c.flush()
	}
	got := make([]byte, len(answer))
	theirs.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.ReadFull(theirs, got); err != nil || !bytes.Equal(got, answer) {
		t.Errorf("the answer is not what was written: %v", err)
	}
}

// Of a message that is longer than allowed, what was dropped is known.
func TestHalfAnOversizedMessage(t *testing.T) {
	next := memories(t)
	ours, theirs := pair(t)
	c := keptServer(next()).newConn(ours, &wire.HandoverConn{})
	const length, came = maxMessage + 1, 50_000
	message := append([]byte{0, 0x40, 0, 1, 0, 0, 0, 1, typeRequest, 0}, make([]byte, came)...)
	if _, err := theirs.Write(message); err != nil {
		t.Fatal(err)
	}
	for left := came; left > 0; {
		ours.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		_, _, err := c.in.next()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		if left, err = unix.IoctlGetInt(int(fds.New().Number(ours)), unix.TIOCINQ); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range next().Pieces(keeper.Connection) {
		if h := inherited(p); h.Length != length || h.Over != 1 || h.Skip-uint64(len(h.In)) != length-came {
			t.Errorf("of %d bytes for stream %d, %d are to be dropped, and %d have come", h.Length, h.Over, h.Skip, len(h.In))
		}
	}
}
