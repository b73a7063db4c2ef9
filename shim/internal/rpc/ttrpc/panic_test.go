package ttrpc

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// A panic in a call answers that call, with its stack in the log. Other calls of the same
// connection, before and after it, are answered too.
func TestPanicIsOneCalls(t *testing.T) {
	var mu sync.Mutex
	var logged []string
	log := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		logged = append(logged, text)
	}
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan struct{})
	s := NewServer(log)
	s.Register("containerd.task.v3.Task", map[string]Handler{
		"Panic": func(_ context.Context, payload []byte) (wire.Message, error) {
			var list []int
			return nil, &Error{Code: Code(list[len(payload)+1<<30])}
		},
		"Nil":  func(context.Context, []byte) (wire.Message, error) { return nil, nil }, // which can't be marshalled
		"Wait": func(context.Context, []byte) (wire.Message, error) { <-waits; return &wire.Empty{}, nil },
	})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	calls := func() func(method string) error {
		conn, err := Dial(path)
		if err != nil {
			t.Fatal(err)
		}
		c := NewClient(conn)
		t.Cleanup(func() { c.Close() })
		return func(method string) error {
			return c.Call("containerd.task.v3.Task", method, nil, time.Minute, &wire.Empty{}, &wire.Empty{})
		}
	}
	call, other := calls(), calls()
	waited := make(chan error, 1)
	go func() { waited <- other("Wait") }()
	for _, method := range []string{"Panic", "Nil", "Panic"} {
		if err := call(method); CodeOf(err) != Internal {
			t.Errorf("%s: %v", method, err)
		}
	}
	close(waits)
	if err := <-waited; err != nil {
		t.Errorf("the call that waited: %v", err)
	}
	s.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if text := strings.Join(logged, "\n"); strings.Count(text, "panic: ") != 3 || !strings.Contains(text, "index out of range [1073741824]") || !strings.Contains(text, "panic_test.go") {
		t.Errorf("logged: %s", text)
	}
}
