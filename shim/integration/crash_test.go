package integration

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	taskevents "github.com/containerd/containerd/api/events"
	containers "github.com/containerd/containerd/api/services/containers/v1"
	events "github.com/containerd/containerd/api/services/events/v1"
	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	"google.golang.org/protobuf/proto"

	"github.com/berth-runtime/berth/shim/wire"
)

// recorder notes the events of all containers, as one word each.
type recorder struct {
	mu   sync.Mutex
	seen []string
}

func (d *daemon) record() *recorder {
	d.t.Helper()
	r := &recorder{}
	ctx, cancel := context.WithCancel(d.ctx())
	d.t.Cleanup(cancel)
	stream, err := d.events().Subscribe(ctx, &events.SubscribeRequest{Filters: []string{`topic~="/tasks/"`}})
	if err != nil {
		d.t.Fatal(err)
	}
	go func() {
		for {
			e, err := stream.Recv()
			if err != nil {
				return
			}
			text := strings.TrimPrefix(e.Topic, "/tasks/")
			switch e.Topic {
			case "/tasks/exit":
				var m taskevents.TaskExit
				if proto.Unmarshal(e.Event.Value, &m) == nil {
					text = fmt.Sprintf("%s exit %s %d", m.ContainerID, m.ID, m.ExitStatus)
				}
			case "/tasks/create", "/tasks/start", "/tasks/paused", "/tasks/resumed", "/tasks/oom":
				var m taskevents.TaskPaused // their first field is the id, in all of them
				if proto.Unmarshal(e.Event.Value, &m) == nil {
					text = m.ContainerID + " " + text
				}
			case "/tasks/delete":
				var m taskevents.TaskDelete
				if proto.Unmarshal(e.Event.Value, &m) == nil {
					text = strings.TrimSpace(m.ContainerID + " delete " + m.ID)
				}
			case "/tasks/exec-added", "/tasks/exec-started":
				var m taskevents.TaskExecAdded
				if proto.Unmarshal(e.Event.Value, &m) == nil {
					text = m.ContainerID + " " + text + " " + m.ExecID
				}
			}
			r.mu.Lock()
			r.seen = append(r.seen, text)
			r.mu.Unlock()
		}
	}()
	time.Sleep(100 * time.Millisecond) // containerd does not say when it has subscribed
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
	eventually(t, "all events of "+id, func() bool { return len(r.of(id)) >= len(list) })
	if got := strings.Join(r.of(id), ", "); got != strings.Join(list, ", ") {
		t.Errorf("events: %s\n  want: %s", got, strings.Join(list, ", "))
	}
}

func TestEventsAreInOrder(t *testing.T) {
	withEngines(t, func(t *testing.T, d *daemon, engine string) {
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

func TestContainerdRestarts(t *testing.T) {
	withEngines(t, func(t *testing.T, d *daemon, engine string) {
		stays := d.define(engine, sh("echo before; read x; echo after; read y; exit 7"))
		s := d.pipes(stays.id, false)
		if err := stays.create(s); err != nil {
			t.Fatal(err)
		}
		if err := stays.start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "first output", func() bool { return s.output[0].String() == "before\n" })
		goes := d.define(engine, sh("read x; exit 5"))
		g := d.pipes(goes.id, false)
		if err := goes.create(g); err != nil {
			t.Fatal(err)
		}
		if err := goes.start(); err != nil {
			t.Fatal(err)
		}

		d.stop()
		if _, err := s.writer.WriteString("x\n"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "output while containerd is away", func() bool { return s.output[0].String() == "before\nafter\n" })
		g.writer.WriteString("x\n") // ends while containerd is away
		eventually(t, "the end of a container", func() bool { _, err := os.Stat(fmt.Sprintf("/proc/%d", goes.pid)); return err != nil })
		d.start()
		if got := goes.wait(""); got != 5 {
			t.Errorf("ended while containerd was away: status %d", got)
		}
		if got := stays.status(); got != "RUNNING" {
			t.Errorf("status %s", got)
		}
		r := d.record()
		s.writer.WriteString("y\n")
		if got := stays.wait(""); got != 7 {
			t.Errorf("status %d", got)
		}
		r.want(t, stays.id, "exit "+stays.id+" 7")
		stays.remove()
		goes.remove()
	})
}

// After kill -9 of a shim, at any moment, nothing of the container is left.
func TestShimIsKilled(t *testing.T) {
	withEngines(t, func(t *testing.T, d *daemon, engine string) {
		for i := range 6 {
			b := d.define(engine)
			done := make(chan struct{})
			if i < 2 {
				if err := b.create(stdio{}); err != nil {
					t.Fatal(err)
				}
				if err := b.start(); err != nil {
					t.Fatal(err)
				}
				close(done)
			} else {
				go func() { // somewhere in the middle
					defer close(done)
					if b.create(stdio{}) == nil {
						b.start()
					}
				}()
				time.Sleep(time.Duration(rand.Intn(60)) * time.Millisecond)
			}
			killAll := func() {
				for _, pid := range d.shims() {
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			killAll()
			<-done
			killAll() // it may have come too early
			eventually(t, "containerd has cleaned up", func() bool {
				r, err := d.tasks().List(d.ctx(), &tasks.ListTasksRequest{})
				if err != nil {
					t.Fatal(err)
				}
				if i < 2 && len(r.Tasks) == 1 && r.Tasks[0].Status.String() == "STOPPED" {
					d.tasks().Delete(d.ctx(), &tasks.DeleteTaskRequest{ContainerID: b.id})
				}
				bundles, _ := filepath.Glob(filepath.Join(d.dir, "state/io.containerd.runtime.v2.task", namespace, "*"))
				return len(r.Tasks) == 0 && len(bundles) == 0
			})
			if _, err := d.containers().Delete(d.ctx(), &containers.DeleteContainerRequest{ID: b.id}); err != nil {
				t.Error(err)
			}
		}
	})
}

const (
	groupAnnotation   = "io.containerd.runc.v2.group"
	sandboxAnnotation = "io.kubernetes.cri.sandbox-id"
)

func TestContainersOfAPodShareAShim(t *testing.T) {
	withEngines(t, func(t *testing.T, d *daemon, engine string) {
		pause := d.define(engine)
		inPod := annotation(sandboxAnnotation, pause.id)
		if err := pause.create(stdio{}); err != nil {
			t.Fatal(err)
		}
		if err := pause.start(); err != nil {
			t.Fatal(err)
		}
		a, b := d.run(engine, inPod), d.run(engine, inPod)
		if n := len(d.shims()); n != 1 {
			t.Errorf("%d shims, want 1", n)
		}
		// The orderly end of one leaves the others alone.
		a.remove()
		for _, c := range []*box{pause, b} {
			if got := c.status(); got != "RUNNING" {
				t.Errorf("%s is %s", c.id, got)
			}
		}
		b.remove()
		pause.remove()
	})
}

// CRI of containerd 2 has the shim's delete called for the pause container
// alone when a pod's shim has died. All of the pod must go.
func TestDeleteOfTheLeaderRemovesThePod(t *testing.T) {
	withEngines(t, func(t *testing.T, d *daemon, engine string) {
		pause := d.run(engine)
		members := []*box{d.run(engine, annotation(sandboxAnnotation, pause.id)), d.run(engine, annotation(sandboxAnnotation, pause.id))}
		state := filepath.Join(d.dir, "state/io.containerd.runtime.v2.task", namespace)
		// Where containerd does not interfere: it is stopped when the shim dies.
		d.stop()
		del := func() {
			cmd := exec.Command(d.shim, "-namespace", namespace, "-address", d.dir+"/c.sock", "-publish-binary", "containerd",
				"-id", pause.id, "-bundle", filepath.Join(state, pause.id), "delete")
			cmd.Dir = filepath.Join(state, pause.id)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var answer wire.DeleteResponse
			if err := wire.Unmarshal(out, &answer); err != nil || answer.ExitStatus != 137 || answer.Pid != pause.pid {
				t.Errorf("answer %+v, %v", answer, err)
			}
		}
		alive := func(b *box) bool { return syscall.Kill(int(b.pid), 0) == nil }
		for _, pid := range d.shims() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		del()
		for _, b := range append(members, pause) {
			eventually(t, b.id+" is gone", func() bool { return !alive(b) })
			if _, err := os.Stat(filepath.Join(d.dir, "engine", namespace, b.id)); err == nil {
				t.Errorf("state of %s is left", b.id)
			}
		}
		d.start()
		eventually(t, "containerd has cleaned up", func() bool {
			left, _ := filepath.Glob(state + "/*")
			return len(left) == 0
		})
		for _, b := range append(members, pause) {
			b.undefine()
		}
	})
}

func TestOneShimForANamespace(t *testing.T) {
	d := newDaemon(t, "BERTH_SHIM_GROUPING=namespace")
	// Containers come and go, so that the shim is often just about to leave when
	// another start finds it.
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 15 {
				b := d.define("", sh("exit 0"))
				if err := b.create(stdio{}); err != nil {
					t.Error(err)
					b.undefine()
					continue
				}
				if err := b.start(); err != nil {
					t.Error(err)
				}
				b.wait("")
				b.remove()
			}
		}()
	}
	wg.Wait()
	var all []*box
	for range 5 {
		all = append(all, d.run(""))
	}
	if n := len(d.shims()); n != 1 {
		t.Errorf("%d shims, want 1", n)
	}
	for _, b := range all {
		b.remove()
	}
}

// Many rounds leave the shim as it was.
func TestNoGrowth(t *testing.T) {
	d := newDaemon(t)
	keeper := d.run("")
	defer keeper.remove()
	round := func() {
		b := d.define("", annotation(groupAnnotation, keeper.id))
		s := d.pipes(b.id, false)
		if err := b.create(s); err != nil {
			t.Fatal(err)
		}
		if err := b.start(); err != nil {
			t.Fatal(err)
		}
		e := d.pipes("e", false)
		if err := b.exec("e", e, "sh", "-c", "echo x; read y"); err != nil {
			t.Fatal(err)
		}
		b.kill(9)
		b.wait("e")
		b.wait("")
		if _, err := b.deleteExec("e"); err != nil {
			t.Error(err)
		}
		if got := e.output[0].wait(); got != "x\n" && got != "" {
			t.Errorf("output %q", got)
		}
		b.remove()
		s.writer.Close()
		e.writer.Close()
	}
	shims := d.shims()
	if len(shims) != 1 {
		t.Fatalf("%d shims", len(shims))
	}
	count := func() (fds, threads int) {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", shims[0]))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", shims[0]))
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := bytes.Cut(text, []byte("\nThreads:"))
		fmt.Sscan(string(after), &threads)
		return len(entries), threads
	}
	for range 5 {
		round()
	}
	fds, threads := count()
	for range 60 {
		round()
	}
	eventually(t, fmt.Sprintf("descriptors are %d again", fds), func() bool { now, _ := count(); return now <= fds })
	if _, now := count(); now > threads+6 {
		t.Errorf("%d threads became %d", threads, now)
	}
}
