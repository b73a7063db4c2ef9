package task

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

func TestExitNeverComesBeforeTheStart(t *testing.T) {
	for range 20 {
		w := newWorld(t)
		w.engine.script = "exit 4"
		// The engine returns only when the process has ended already.
		w.engine.before = func(call string, pid int) {
			if call == "start" || call == "exec" {
				zombie(pid)
			}
		}
		w.must(w.make("c"))
		w.must(w.begin("c", ""))
		if got := w.waitFor("c", ""); got != 4 {
			t.Errorf("status %d", got)
		}
		w.must(w.drop("c", ""))
		w.events("create", "start", "exit c 4", "delete")
	}
}

func TestExitsOfExecsComeBeforeTheInits(t *testing.T) {
	w := newWorld(t)
	w.engine.script = "exec sleep 1000"
	w.must(w.make("c"))
	w.must(w.begin("c", ""))
	w.must(w.add("c", "e", "sleep 0.2; exit 3"))
	w.must(w.begin("c", "e"))
	w.must(call(w, w.kill, &wire.KillRequest{ID: "c", Signal: 9})) // the exec goes on for a while
	if got := w.waitFor("c", ""); got != 137 {
		t.Errorf("status %d", got)
	}
	w.events("create", "start", "exec-added", "exec-started e", "exit e 3", "exit c 137")
}

func TestInitThatEndsWhileAnExecStarts(t *testing.T) {
	w := newWorld(t)
	w.engine.script = "exec sleep 1000"
	w.must(w.make("c"))
	w.must(w.begin("c", ""))
	w.must(w.add("c", "e", "exit 8"))
	w.engine.before = func(call string, pid int) {
		if call == "exec" {
			w.must(call2(w, "c", 9))
			c, _ := w.find("c")
			for { // until the reaper has told of it
				c.mu.Lock()
				ended := c.init.ended
				c.mu.Unlock()
				if ended {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
	w.must(w.begin("c", "e"))
	w.waitFor("c", "")
	w.events("create", "start", "exec-added", "exec-started e", "exit e 8", "exit c 137")
}

func call2(w *world, id string, signal uint32) error {
	return call(w, w.kill, &wire.KillRequest{ID: id, Signal: signal})
}

func TestKilledBeforeTheCreateIsPublished(t *testing.T) {
	w := newWorld(t)
	w.engine.before = func(call string, pid int) {
		if call == "created" {
			unix.Kill(pid, unix.SIGKILL)
			zombie(pid)
		}
	}
	w.must(w.make("c"))
	if got := w.waitFor("c", ""); got != 137 {
		t.Errorf("status %d", got)
	}
	w.code("start", w.begin("c", ""), ttrpc.FailedPrecondition)
	w.must(w.drop("c", ""))
	w.events("create", "exit c 137", "delete")
}

func TestFailedStartOfAnExec(t *testing.T) {
	w := newWorld(t)
	w.engine.script = "exec sleep 1000"
	w.must(w.make("c"))
	w.must(w.begin("c", ""))
	w.must(w.add("c", "e", "true"))
	w.engine.fail["exec"] = errors.New("no such program")
	w.code("start", w.begin("c", "e"), ttrpc.Unknown)
	w.waitFor("c", "e")
	// It was never started: containerd's own tests want that told.
	if answer, err := w.state(context.Background(), &wire.StateRequest{ID: "c", ExecID: "e"}); err != nil || answer.(*wire.StateResponse).Status != wire.StatusCreated {
		t.Errorf("state %+v, %v", answer, err)
	}
	w.code("start again", w.begin("c", "e"), ttrpc.FailedPrecondition)
	w.must(w.drop("c", "e"))
	w.events("create", "start", "exec-added", "delete e")
	w.must(call2(w, "c", 9))
	w.waitFor("c", "")
}

func TestFailedCreateLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.engine.fail["create"] = errors.New("config.json: /process/args: missing")
	if err := w.make("c"); err == nil || err.Error() != "config.json: /process/args: missing" {
		t.Errorf("the engine's own sentence became %v", err)
	}
	w.engine.fail = nil
	w.must(w.make("c")) // the id is free
	w.must(w.drop("c", ""))
	w.events("create", "exit c 137", "delete")
}

func TestCallsInTheWrongState(t *testing.T) {
	w := newWorld(t)
	w.engine.script = "exec sleep 1000"
	w.code("unknown", w.begin("c", ""), ttrpc.NotFound)
	w.code("no id", call(w, w.create, &wire.CreateTaskRequest{Bundle: w.bundle}), ttrpc.InvalidArgument)
	w.code("no bundle", call(w, w.create, &wire.CreateTaskRequest{ID: "x", Bundle: t.TempDir()}), ttrpc.InvalidArgument)
	w.code("options", call(w, w.create, &wire.CreateTaskRequest{ID: "x", Bundle: w.bundle, Options: &wire.Any{TypeURL: "x.Y"}}), ttrpc.InvalidArgument)
	w.must(w.make("c"))
	w.code("create twice", w.make("c"), ttrpc.AlreadyExists)
	w.code("pause of a created one", call(w, w.pause, &wire.PauseRequest{ID: "c"}), ttrpc.FailedPrecondition)
	w.must(w.add("c", "e", "true"))
	w.code("signal to an exec that is not started", call(w, w.kill, &wire.KillRequest{ID: "c", ExecID: "e", Signal: 9}), ttrpc.FailedPrecondition)
	w.code("exec twice", w.add("c", "e", "true"), ttrpc.AlreadyExists)
	w.code("exec with a path for an id", w.add("c", "../e", "true"), ttrpc.InvalidArgument)
	w.must(w.begin("c", ""))
	w.code("start twice", w.begin("c", ""), ttrpc.FailedPrecondition)
	w.code("delete while running", w.drop("c", ""), ttrpc.FailedPrecondition)
	w.must(call(w, w.pause, &wire.PauseRequest{ID: "c"}))
	w.code("pause twice", call(w, w.pause, &wire.PauseRequest{ID: "c"}), ttrpc.FailedPrecondition)
	w.code("start an exec while paused", w.begin("c", "e"), ttrpc.FailedPrecondition)
	w.must(call(w, w.resume, &wire.ResumeRequest{ID: "c"}))
	w.code("resume twice", call(w, w.resume, &wire.ResumeRequest{ID: "c"}), ttrpc.FailedPrecondition)
	w.code("update of nothing", call(w, w.update, &wire.UpdateTaskRequest{ID: "c"}), ttrpc.InvalidArgument)
	w.engine.fail["update"] = engine.ErrNotFound
	w.code("engine's not found", call(w, w.update, &wire.UpdateTaskRequest{ID: "c", Resources: &wire.Any{}}), ttrpc.NotFound)
	w.code("options that are not a checkpoint's", call(w, w.checkpoint, &wire.CheckpointTaskRequest{ID: "c", Path: t.TempDir(),
		Options: &wire.Any{TypeURL: wire.RuncOptionsURL, Value: []byte{8, 1}}}), ttrpc.InvalidArgument)
	w.engine.fail["checkpoint"] = errors.ErrUnsupported
	w.code("what the engine cannot do", call(w, w.checkpoint, &wire.CheckpointTaskRequest{ID: "c", Path: t.TempDir()}), ttrpc.Unimplemented)
	w.code("stats without a cgroup", call(w, w.stats, &wire.StatsRequest{ID: "c"}), ttrpc.NotFound)
	w.must(call2(w, "c", 9))
	w.waitFor("c", "")
	w.code("kill after the end", call2(w, "c", 9), ttrpc.NotFound)
	w.code("exec after the end", w.add("c", "f", "true"), ttrpc.FailedPrecondition)
	w.code("start an exec after the end", w.begin("c", "e"), ttrpc.FailedPrecondition)
	w.code("update after the end", call(w, w.update, &wire.UpdateTaskRequest{ID: "c", Resources: &wire.Any{}}), ttrpc.FailedPrecondition)
	w.must(w.drop("c", ""))
	w.code("delete twice", w.drop("c", ""), ttrpc.NotFound)
	w.code("broken request", func() error { _, err := Method(w.start)(context.Background(), []byte{0xff}); return err }(), ttrpc.InvalidArgument)
}

// A failed delete can be tried again, and then does the rest.
func TestDeleteCanBeRetried(t *testing.T) {
	w := newWorld(t)
	w.must(w.make("c"))
	w.must(w.begin("c", ""))
	w.waitFor("c", "")
	w.engine.fail["delete"] = errors.New("busy")
	w.code("delete", w.drop("c", ""), ttrpc.Unknown)
	w.engine.fail = nil
	w.must(w.drop("c", ""))
	w.events("create", "start", "exit c 0", "delete")
}

func (w *world) stateOf(id string) *wire.StateResponse {
	w.t.Helper()
	answer, err := w.state(context.Background(), &wire.StateRequest{ID: id})
	w.must(err)
	return answer.(*wire.StateResponse)
}

// While a container is being frozen, which may take a while, it says so.
func TestStateWhilePausing(t *testing.T) {
	w := newWorld(t)
	w.engine.script = "exec sleep 1000"
	w.must(w.make("c"))
	w.must(w.begin("c", ""))
	var during wire.TaskStatus
	w.engine.before = func(call string, _ int) {
		if call == "pause" {
			during = w.stateOf("c").Status
		}
	}
	w.must(call(w, w.pause, &wire.PauseRequest{ID: "c"}))
	if during != wire.StatusPausing {
		t.Errorf("while it is being paused its status is %d", during)
	}
	if got := w.stateOf("c").Status; got != wire.StatusPaused {
		t.Errorf("paused: status %d", got)
	}
	w.must(call2(w, "c", 9))
	w.waitFor("c", "")
	w.must(w.drop("c", ""))
	w.events("create", "start", "paused", "exit c 137", "delete")
}

func TestStateTellsTimes(t *testing.T) {
	w := newWorld(t)
	w.engine.script = "exec sleep 1000"
	w.must(w.make("c"))
	state := func() *wire.StateResponse {
		t.Helper()
		return w.stateOf("c")
	}
	if s := state(); s.Status != wire.StatusCreated || s.ExitedAt.Seconds != -62135596800 || s.Pid == 0 {
		t.Errorf("created: %+v", s)
	}
	w.must(w.begin("c", ""))
	if s := state(); s.Status != wire.StatusRunning {
		t.Errorf("running: %+v", s)
	}
	before := time.Now()
	w.must(call2(w, "c", 15))
	w.waitFor("c", "")
	if s := state(); s.Status != wire.StatusStopped || s.ExitStatus != 143 || s.ExitedAt.Time().Before(before) {
		t.Errorf("stopped: %+v", s)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	w.must(w.make("c"))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := w.wait(ctx, &wire.WaitRequest{ID: "c"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	w.must(w.drop("c", ""))
}

// The shim leaves when it is asked to, has no container and awaits none.
func TestShutdown(t *testing.T) {
	w := newWorld(t)
	stays := func(why string) {
		t.Helper()
		select {
		case <-w.left:
			t.Fatalf("left although %s", why)
		default:
		}
	}
	w.must(call(w, w.expect, &wire.ConnectRequest{ID: "c"}))
	w.must(call(w, w.shutdown, &wire.ShutdownRequest{}))
	stays("a container was announced")
	w.must(w.make("c"))
	w.must(call(w, w.shutdown, &wire.ShutdownRequest{}))
	stays("there is a container")
	w.must(w.drop("c", ""))
	<-w.left
	w.code("announcing to one that leaves", call(w, w.expect, &wire.ConnectRequest{ID: "d"}), ttrpc.Unavailable)
	w.code("creating in one that leaves", w.make("d"), ttrpc.Unavailable)
}

func TestConnectToAnUnknownContainerIsNoError(t *testing.T) {
	w := newWorld(t)
	answer, err := w.connect(context.Background(), &wire.ConnectRequest{ID: "c"})
	w.must(err)
	if r := answer.(*wire.ConnectResponse); r.ShimPid == 0 || r.TaskPid != 0 {
		t.Errorf("%+v", r)
	}
}
