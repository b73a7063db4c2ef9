package events

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// A containerd that takes its time with an event is not sent it a second time: it has it.
func TestSlowContainerd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := ttrpc.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	server := ttrpc.NewServer(func(string) {})
	var mu sync.Mutex
	var topics []string
	late := make(chan struct{})
	server.Register("containerd.services.events.ttrpc.v1.Events", map[string]ttrpc.Handler{
		"Forward": func(_ context.Context, payload []byte) (wire.Message, error) {
			var r wire.ForwardRequest
			if err := wire.Unmarshal(payload, &r); err != nil {
				return nil, err
			}
			mu.Lock()
			topics = append(topics, r.Envelope.Topic)
			mu.Unlock()
			<-late
			return &wire.Empty{}, nil
		},
	})
	go server.Serve(listener)
	defer server.Close()
	impatient := sync.OnceFunc(func() { close(late) })
	p := newPublisher(&socket{path: path, namespace: "n", timeout: 20 * time.Millisecond}, "n", func(text string) {
		if strings.Contains(text, "will be tried again") {
			impatient()
		}
	})
	p.Resume()
	p.Publish(&wire.TaskPaused{ContainerID: "c"})
	p.Publish(&wire.TaskResumed{ContainerID: "c"})
	p.Close(time.Minute)
	if want := []string{"/tasks/paused", "/tasks/resumed"}; !slices.Equal(topics, want) {
		t.Errorf("events %q, want %q", topics, want)
	}
}
