package ttrpc

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// suspending serves calls that take no time, one that waits until released, and one that cannot be
// interrupted.
func suspending(t *testing.T) (s *Server, path string, release chan struct{}) {
	t.Helper()
	path, release = filepath.Join(t.TempDir(), "s"), make(chan struct{})
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s = NewServer(func(text string) { t.Log(text) })
	s.Register("s", map[string]Handler{
		"State": func(_ context.Context, payload []byte) (wire.Message, error) {
			var r wire.StateRequest
			err := wire.Unmarshal(payload, &r)
			return &wire.StateResponse{ID: r.ID}, err
		},
		"Wait": func(ctx context.Context, _ []byte) (wire.Message, error) {
			select {
			case <-release:
				return &wire.WaitResponse{ExitStatus: 7}, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		},
		"Hook": func(context.Context, []byte) (wire.Message, error) {
			<-release
			return &wire.Empty{}, nil
		},
	})
	s.Long("s", "Wait")
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s, path, release
}

func dialed(t *testing.T, path string) *Client {
	t.Helper()
	conn, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	c := NewClient(conn)
	t.Cleanup(func() { c.Close() })
	return c
}

// Calls from several clients are all answered, each once and rightly, while the server is suspended
// again and again; one that waits goes on waiting, and one that has no more time than until then is
// told so.
func TestSuspendLosesNoCall(t *testing.T) {
	s, path, release := suspending(t)
	if err := dialed(t, path).Call("s", "State", nil, time.Minute, &wire.Empty{}, &wire.Empty{}); err != nil {
		t.Fatal(err) // it serves
	}
	var clients sync.WaitGroup
	for range 4 {
		c := dialed(t, path)
		clients.Add(1)
		go func() {
			defer clients.Done()
			for i := range 100 {
				id := strings.Repeat("x", i*20)
				var r wire.StateResponse
				if err := c.Call("s", "State", nil, time.Minute, &wire.StateRequest{ID: id}, &r); err != nil || r.ID != id {
					t.Errorf("call %d: %v, %d bytes", i, err, len(r.ID))
					return
				}
			}
		}()
	}
	waited, late := make(chan error, 1), make(chan error, 1)
	go func() {
		var r wire.WaitResponse
		err := dialed(t, path).Call("s", "Wait", nil, time.Minute, &wire.Empty{}, &r)
		if err == nil && r.ExitStatus != 7 {
			err = errors.New("another status")
		}
		waited <- err
	}()
	go func() {
		c := dialed(t, path)
		b, err := frame(1, typeRequest, flagRemoteClosed, &wire.Request{Service: "s", Method: "Wait", TimeoutNano: int64(50 * time.Millisecond)})
		if err == nil {
			_, err = c.conn.Write(b)
		}
		var r wire.Response
		if _, body, readErr := c.in.next(); readErr == nil {
			err = wire.Unmarshal(body, &r)
		}
		if err == nil && (r.Status == nil || Code(r.Status.Code) != DeadlineExceeded) {
			err = errors.New("no word that the time is over")
		}
		late <- err
	}()
	all := make(chan struct{})
	go func() {
		clients.Wait()
		close(all)
	}()
	for going, n := true, 0; going; n++ {
		if err := s.Suspend(time.Minute); err != nil {
			t.Fatal(err)
		}
		if n%7 == 0 {
			time.Sleep(time.Millisecond) // for what comes meanwhile
		}
		s.Resume()
		time.Sleep(time.Millisecond) // or it would get nowhere
		select {
		case <-all:
			going = false
		default:
		}
	}
	if err := <-late; err != nil {
		t.Error(err)
	}
	close(release)
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

// What cannot be interrupted and takes its time keeps the server from being suspended, and is
// named; it is served on.
func TestSuspendIsBusy(t *testing.T) {
	s, path, release := suspending(t)
	c, other := dialed(t, path), dialed(t, path)
	hooked := make(chan error, 1)
	if err := other.Call("s", "State", nil, time.Minute, &wire.Empty{}, &wire.Empty{}); err != nil {
		t.Fatal(err)
	}
	go func() { hooked <- c.Call("s", "Hook", nil, time.Minute, &wire.Empty{}, &wire.Empty{}) }()
	var err error
	for err == nil {
		if err = s.Suspend(20 * time.Millisecond); err == nil {
			s.Resume() // the call has not come yet
		}
	}
	if !strings.Contains(err.Error(), "busy with Hook") {
		t.Error(err)
	}
	if err := other.Call("s", "State", nil, time.Minute, &wire.Empty{}, &wire.Empty{}); err != nil {
		t.Error(err)
	}
	close(release)
	if err := <-hooked; err != nil {
		t.Error(err)
	}
	if err := s.Suspend(time.Minute); err != nil {
		t.Error(err)
	}
	s.Resume()
}

// A call has the time that it is suspended for on top: the answer that comes meanwhile is not lost.
func TestSuspendTakesNoTimeOfACall(t *testing.T) {
	_, path, release := suspending(t)
	c := dialed(t, path)
	result := make(chan error, 1)
	call := func() {
		result <- c.Call("s", "Wait", nil, time.Minute, &wire.Empty{}, &wire.WaitResponse{})
	}
	go call()
	c.Suspend()
	if err := <-result; !errors.Is(err, ErrSuspended) {
		t.Fatal(err)
	}
	close(release)
	// An hour goes by.
	c.since, c.until = c.since.Add(-time.Hour), c.until.Add(-time.Hour)
	c.Resume()
	call()
	if err := <-result; err != nil {
		t.Error(err)
	}
}
