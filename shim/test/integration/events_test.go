package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-runtime/berth/internal/test/wait"
	taskevents "github.com/containerd/containerd/api/events"
	events "github.com/containerd/containerd/api/services/events/v1"
	"google.golang.org/protobuf/proto"
)

// recorder notes events, each as a line that begins with its container's id.
type recorder struct {
	mu   sync.Mutex
	seen []string
}

func (r *recorder) note(topic string, event []byte) {
	line := describe(topic, event)
	r.mu.Lock()
	r.seen = append(r.seen, line)
	r.mu.Unlock()
}

// describe says what an event is about, and how a process has ended.
func describe(topic string, event []byte) string {
	word := strings.TrimPrefix(topic, "/tasks/")
	switch topic {
	case "/tasks/exit":
		var m taskevents.TaskExit
		if proto.Unmarshal(event, &m) == nil {
			return fmt.Sprintf("%s exit %s %d", m.ContainerID, m.ID, m.ExitStatus)
		}
	case "/tasks/create", "/tasks/start", "/tasks/paused", "/tasks/resumed", "/tasks/oom":
		var m taskevents.TaskPaused // their first field is the id, in all of them
		if proto.Unmarshal(event, &m) == nil {
			return m.ContainerID + " " + word
		}
	case "/tasks/delete":
		var m taskevents.TaskDelete
		if proto.Unmarshal(event, &m) == nil {
			return strings.TrimSpace(m.ContainerID + " delete " + m.ID)
		}
	case "/tasks/exec-added", "/tasks/exec-started":
		var m taskevents.TaskExecAdded
		if proto.Unmarshal(event, &m) == nil {
			return m.ContainerID + " " + word + " " + m.ExecID
		}
	}
	return word
}

// record notes what containerd tells its clients.
func (d *daemon) record() *recorder {
	d.T.Helper()
	r := &recorder{}
	ctx, cancel := context.WithCancel(d.Context())
	d.T.Cleanup(cancel)
	stream, err := d.events().Subscribe(ctx, &events.SubscribeRequest{Filters: []string{`topic~="/tasks/"`}})
	if err != nil {
		d.T.Fatal(err)
	}
	go func() {
		for {
			e, err := stream.Recv()
			if err != nil {
				return
			}
			r.note(e.Topic, e.Event.Value)
		}
	}()
	// containerd does not say when it has subscribed; so it is given something to tell.
	const mark = "subscribed"
	value, err := proto.Marshal(&taskevents.TaskPaused{ContainerID: mark})
	if err != nil {
		d.T.Fatal(err)
	}
	wait.Until(d.T, "an event comes back", func() bool {
		_, err := d.events().Publish(ctx, &events.PublishRequest{Topic: "/tasks/paused", Event: any(d.T, "containerd.events.TaskPaused", value)})
		if err != nil {
			d.T.Fatal(err)
		}
		return len(r.of(mark)) > 0
	})
	return r
}

// of gives the events of one container.
func (r *recorder) of(id string) (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.seen {
		if rest, ok := strings.CutPrefix(e, id+" "); ok {
			list = append(list, rest)
		}
	}
	return list
}

func (r *recorder) want(t *testing.T, id string, list ...string) {
	t.Helper()
	for end := time.Now().Add(patience); len(r.of(id)) < len(list) && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if got := strings.Join(r.of(id), ", "); got != strings.Join(list, ", ") {
		t.Errorf("events of %s: %s\n  want: %s", id, got, strings.Join(list, ", "))
	}
}

func TestEventsAreInOrder(t *testing.T) {
	withSetups(t, func(t *testing.T, d *daemon, engine string) {
		r := d.record()
		for range 5 {
			// A process that ends before its start is answered.
			b := d.run(engine, sh("exit 9"))
			b.wait("")
			b.remove()
			r.want(t, b.id, "create", "start", "exit "+b.id+" 9", "delete")
		}
		b := d.run(engine)
		for _, id := range []string{"quick", "other"} {
			if err := b.exec(id, stdio{}, "true"); err != nil {
				t.Fatal(err)
			}
			b.wait(id)
			if _, err := b.deleteExec(id); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.exec("last", stdio{}, "sleep", "1000"); err != nil {
			t.Fatal(err)
		}
		b.remove()
		r.want(t, b.id, "create", "start",
			"exec-added quick", "exec-started quick", "exit quick 0", "delete quick",
			"exec-added other", "exec-started other", "exit other 0", "delete other",
			"exec-added last", "exec-started last", "exit last 137", "exit "+b.id+" 137", "delete")
	})
}
