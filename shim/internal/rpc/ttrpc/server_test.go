package ttrpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// serve runs our server with the given methods of one service.
func serve(t *testing.T, methods map[string]Handler) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(func(text string) { t.Log(text) })
	s.Register("containerd.task.v3.Task", methods)
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return path
}

// The time of a call was over before it was sent.
func TestLateCall(t *testing.T) {
	ended := make(chan error, 1)
	path := serve(t, map[string]Handler{
		"Wait": func(ctx context.Context, _ []byte) (wire.Message, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		},
	})
	late, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	b, err := frame(1, typeRequest, flagRemoteClosed, &wire.Request{Service: "containerd.task.v3.Task", Method: "Wait", TimeoutNano: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("handler of a late call ended with %v", err)
	}
}

func TestOversizedFrameIsRefusedAndTheConnectionLives(t *testing.T) {
	path := serve(t, map[string]Handler{
		"State": func(context.Context, []byte) (wire.Message, error) { return &wire.StateResponse{Pid: 1}, nil },
		"Stats": func(context.Context, []byte) (wire.Message, error) {
			return &wire.StatsResponse{Stats: &wire.Any{Value: make([]byte, maxMessage)}}, nil
		},
	})
	conn, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	big := make([]byte, headerSize+maxMessage+1)
	copy(big, []byte{0, 0x40, 0, 1, 0, 0, 0, 1, typeRequest, 0})
	go conn.Write(big)
	_, body, err := newFrameReader(conn).next()
	if err != nil {
		t.Fatal(err)
	}
	var r wire.Response
	if err := wire.Unmarshal(body, &r); err != nil || Code(r.Status.Code) != ResourceExhausted {
		t.Fatalf("got %+v, %v", r.Status, err)
	}
	c := NewClient(conn)
	c.stream = 3
	if err := c.Call("containerd.task.v3.Task", "State", nil, time.Minute, &wire.StateRequest{}, &wire.StateResponse{}); err != nil {
		t.Fatal(err)
	}
	err = c.Call("containerd.task.v3.Task", "Stats", nil, time.Minute, &wire.StatsRequest{}, &wire.StatsResponse{})
	if CodeOf(err) != ResourceExhausted {
		t.Fatalf("an answer that is too long: %v", err)
	}
}

func TestStreamIdsMustBeOddAndRise(t *testing.T) {
	path := serve(t, map[string]Handler{
		"State": func(context.Context, []byte) (wire.Message, error) { return &wire.StateResponse{}, nil },
	})
	for _, tc := range []struct {
		streams []uint32
		want    Code
	}{{[]uint32{2}, InvalidArgument}, {[]uint32{5, 3}, InvalidArgument}, {[]uint32{5, 5}, InvalidArgument}, {[]uint32{1, 9}, 0}} {
		conn, err := Dial(path)
		if err != nil {
			t.Fatal(err)
		}
		var got Code
		for _, id := range tc.streams {
			b, err := frame(id, typeRequest, 0, &wire.Request{Service: "containerd.task.v3.Task", Method: "State"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write(b); err != nil {
				t.Fatal(err)
			}
			_, body, err := newFrameReader(conn).next()
			if err != nil {
				t.Fatal(err)
			}
			var r wire.Response
			if err := wire.Unmarshal(body, &r); err != nil {
				t.Fatal(err)
			}
			got = Code(r.Status.Code)
		}
		if got != tc.want {
			t.Errorf("streams %v: code %d, want %d", tc.streams, got, tc.want)
		}
		conn.Close()
	}
}

// FuzzServerReads feeds any bytes to a serving connection; it must neither
// panic nor answer what was not asked.
func FuzzServerReads(f *testing.F) {
	add := func(messages ...[]byte) { f.Add(bytes.Join(messages, nil)) }
	request := func(stream uint32, flags uint8, r *wire.Request) []byte {
		b, err := frame(stream, typeRequest, flags, r)
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	call := &wire.Request{Service: "s", Method: "m", TimeoutNano: 1e9}
	add(request(1, flagRemoteClosed, call), request(3, flagRemoteClosed, call))
	add(request(1, 0, &wire.Request{Service: "s", Method: "x"}), request(3, 0, &wire.Request{Service: "x", Method: "m"}))
	add(request(1, 0, &wire.Request{Service: "s", Method: "fails"}), request(2, 0, call))
	add(request(1, flagRemoteOpen, call), []byte{0, 0, 0, 1, 0, 0, 0, 1, typeData, flagRemoteClosed, 0})
	add([]byte{0, 0, 0, 2, 0, 0, 0, 1, typeRequest, 0, 0xff, 0xff}, []byte{0, 0, 0, 1, 0, 0, 0, 1, typeResponse, 0, 0})
	add(make([]byte, headerSize-1))
	f.Fuzz(func(t *testing.T, b []byte) {
		pair, err := socketpair()
		if err != nil {
			t.Fatal(err)
		}
		defer pair[1].Close()
		s := NewServer(func(string) {})
		s.Register("s", map[string]Handler{
			"m":     func(context.Context, []byte) (wire.Message, error) { return &wire.Empty{}, nil },
			"fails": func(context.Context, []byte) (wire.Message, error) { return nil, unix.EPERM },
		})
		c := s.newConn(pair[0], &wire.HandoverConn{})
		go func() {
			c.serve()
			s.answering.Wait()
			pair[0].Close()
		}()
		go func() {
			pair[1].Write(b)
			if raw, err := pair[1].SyscallConn(); err == nil {
				raw.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_WR) })
			}
		}()
		asked := map[uint32]int{}
		for in := newFrameReader(bytes.NewReader(b)); ; {
			h, _, err := in.next()
			var oversized errOversized
			if err != nil && !errors.As(err, &oversized) {
				break
			}
			if err != nil || h.kind == typeRequest {
				asked[h.stream]++
			}
		}
		for in := newFrameReader(pair[1]); ; {
			h, _, err := in.next()
			if err != nil {
				if err != io.EOF && !errors.Is(err, unix.ECONNRESET) {
					t.Error(err)
				}
				return
			}
			if asked[h.stream]--; h.kind != typeResponse || asked[h.stream] < 0 {
				t.Errorf("%+v answers nothing of % x", h, b)
			}
		}
	})
}
