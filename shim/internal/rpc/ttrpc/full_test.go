package ttrpc

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// Nothing that is read or written is lost when the keeper's memory becomes full in the middle of
// it, and nothing of a connection that is made then.
func TestFullMemoryLosesNothing(t *testing.T) {
	m := memories(t)()
	s := keptServer(m)
	ours, theirs := pair(t)
	before := s.newConn(ours, &wire.HandoverConn{})
	long, err := frame(1, typeRequest, 0, &wire.Request{Service: "s", Method: "Long", Payload: bytes.Repeat([]byte("payload"), 1<<10)})
	if err != nil {
		t.Fatal(err)
	}
	const came = 3000
	if _, err := theirs.Write(long[:came]); err != nil {
		t.Fatal(err)
	}
	ours.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, _, err := before.in.next(); err == nil {
		t.Fatal("half a request is read")
	}
	ours.SetReadDeadline(time.Time{})
	before.queue([]byte("queued before; "))

	m.Commit(make([]keeper.Change, 1000)...)
	if err := m.Next("/bin/true", "/bin/true"); err == nil {
		t.Fatal("the memory is not full")
	}
	ours2, theirs2 := pair(t)
	after := s.newConn(ours2, &wire.HandoverConn{})
	for _, c := range []struct {
		*serverConn
		peer interface {
			io.ReadWriter
			SetReadDeadline(time.Time) error
		}
		rest   []byte
		queued string
	}{{before, theirs, long[came:], "queued before; "}, {after, theirs2, long, ""}} {
		written := make(chan error)
		go func() {
			_, err := c.peer.Write(append(c.rest, requestFrame(t, 3, "Short")...))
			written <- err
		}()
		for _, want := range []uint32{1, 3} {
			h, body, err := c.in.next()
			if err != nil || h.stream != want {
				t.Fatalf("stream %d, %v", h.stream, err)
			}
			if want == 1 && !bytes.Equal(body, long[headerSize:]) {
				t.Errorf("a request of %d bytes, want %d", len(body), len(long)-headerSize)
			}
			call := &call{conn: c.serverConn, stream: h.stream, service: "s", method: "Short"}
			c.kept.note(call, len(c.in.buf))
			if err := c.send([]byte("answer; "), keeper.Change{Slot: call.slot}); err != nil {
				t.Error(err)
			}
		}
		if err := <-written; err != nil {
			t.Error(err)
		}
		got := make([]byte, len(c.queued)+2*len("answer; "))
		c.peer.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.ReadFull(c.peer, got); err != nil || string(got) != c.queued+"answer; answer; " {
			t.Errorf("the peer reads %q, %v", got, err)
		}
	}
}
