package task

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

func (w *world) leaves(t *testing.T) {
	t.Helper()
	select {
	case <-w.left:
	case <-time.After(20 * time.Second):
		t.Error("the shim stays")
	}
}

// slowCreate begins a create that waits, as for a hook, until go on is closed. It gives the pid of
// the init.
func (w *world) slowCreate(goOn chan struct{}) (pid chan int, made chan error) {
	pid, made = make(chan int, 1), make(chan error, 1)
	w.engine.before = func(call string, p int) {
		if call == "created" {
			pid <- p
			<-goOn
		}
	}
	go func() { made <- w.make("c") }()
	return pid, made
}

// A Delete that comes while the container is made waits, and deletes it then. Before, it was
// answered that there is no such container, and the shim stayed with it for ever.
func TestDeleteDuringCreate(t *testing.T) {
	w := newWorld(t)
	goOn := make(chan struct{})
	pid, made := w.slowCreate(goOn)
	<-pid
	dropped := make(chan error, 1)
	go func() { dropped <- w.drop("c", "") }()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := w.delete(ctx, &wire.DeleteRequest{ID: "c"})
	w.code("a Delete that can't wait so long", withCode(err), ttrpc.DeadlineExceeded)
	_, err = w.shutdown(context.Background(), nil)
	w.must(err)
	close(goOn)
	w.must(<-made)
	w.must(<-dropped)
	w.leaves(t)
}

// The command "delete" kills what a client has given up. The shim drops it, and leaves.
func TestForgottenDuringCreate(t *testing.T) {
	w := newWorld(t)
	goOn := make(chan struct{})
	pid, made := w.slowCreate(goOn)
	init := <-pid
	_, err := w.shutdown(context.Background(), nil)
	w.must(err)
	_, err = w.unexpect(context.Background(), &wire.ConnectRequest{ID: "c"})
	w.must(err)
	close(goOn)
	w.must(<-made)
	w.leaves(t)
	if err := unix.Kill(init, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("its init: %v", err)
	}
}

func TestForgottenWhenRunning(t *testing.T) {
	w := newWorld(t)
	w.engine.script = "exec sleep 1000"
	w.must(w.make("c"))
	w.must(w.begin("c", ""))
	_, err := w.shutdown(context.Background(), nil)
	w.must(err)
	_, err = w.unexpect(context.Background(), &wire.ConnectRequest{ID: "c"})
	w.must(err)
	w.leaves(t)
	w.events("create", "start", "exit c 137")
}

// A shim that was started for a container which never came.
func TestNobodyCame(t *testing.T) {
	w := newWorld(t)
	w.first = "c"
	w.nobodyCame()
	w.leaves(t)
}

func TestSomebodyCame(t *testing.T) {
	w := newWorld(t)
	w.first = "c"
	w.must(w.make("c"))
	w.nobodyCame()
	select {
	case <-w.left:
		t.Error("the shim leaves with a container")
	case <-time.After(50 * time.Millisecond):
	}
	w.must(call2(w, "c", 9))
	w.waitFor("c", "")
	w.must(w.drop("c", ""))
}

// A restore that fails may be tried again; before, the second start ended the shim with all its
// pod.
func TestStartAfterFailedRestore(t *testing.T) {
	w := newWorld(t)
	w.engine.script = "exec sleep 1000"
	w.must(call(w, w.create, &wire.CreateTaskRequest{ID: "c", Bundle: w.bundle, Checkpoint: t.TempDir()}))
	w.engine.fail["create"] = errors.New("criu refuses")
	w.code("start", w.begin("c", ""), ttrpc.Unknown)
	w.code("start again", w.begin("c", ""), ttrpc.Unknown)
	delete(w.engine.fail, "create")
	w.must(w.begin("c", ""))
	w.must(call2(w, "c", 9))
	w.waitFor("c", "")
	w.must(w.drop("c", ""))
}

// An exec whose streams nobody opens does not hold back the exit of the init.
func TestExecWithoutClient(t *testing.T) {
	w := newWorld(t)
	w.engine.script = "exec sleep 1000"
	w.must(w.make("c"))
	w.must(w.begin("c", ""))
	fifo := t.TempDir() + "/out"
	w.must(unix.Mkfifo(fifo, 0o600))
	w.must(call(w, w.exec, &wire.ExecProcessRequest{ID: "c", ExecID: "e", Stdout: fifo, Spec: &wire.Any{Value: []byte("true")}}))
	ctx, cancel := context.WithCancel(context.Background())
	started := make(chan error, 1)
	go func() {
		_, err := w.start(ctx, &wire.StartRequest{ID: "c", ExecID: "e"})
		started <- withCode(err)
	}()
	w.must(call2(w, "c", 9))
	if got := w.waitFor("c", ""); got != 137 {
		t.Errorf("status %d", got)
	}
	cancel()
	w.code("start", <-started, ttrpc.FailedPrecondition)
	w.must(w.drop("c", ""))
}
