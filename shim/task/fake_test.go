package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
	"github.com/berth-runtime/berth/shim/reaper"
)

var startReaper = sync.OnceValues(reaper.Start)

// fake is an engine whose containers are shells that wait for a line until they
// run their script. It does what a test tells it to at the points that matter.
type fake struct {
	script string // of the init
	fail   map[string]error
	// before is called at the end of a call, before it returns: the process may
	// have ended by then.
	before func(call string, pid int)
}

type fakeContainer struct {
	*fake
	pid  int
	gate *os.File
}

func (f *fake) spawn(script string, wait bool) (int, *os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer read.Close()
	if wait {
		script = "read x <&3; exec 3<&-; " + script
	}
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", script}, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2, read.Fd()},
	})
	if err != nil {
		write.Close()
		return 0, nil, err
	}
	return pid, write, nil
}

func (f *fake) done(call string, pid int) error {
	if f.before != nil {
		f.before(call, pid)
	}
	return f.fail[call]
}

func (f *fake) Create(_ context.Context, s *engine.Create) (engine.Container, *engine.Process, error) {
	if err := f.fail["create"]; err != nil {
		return nil, nil, err
	}
	pid, gate, err := f.spawn(f.script, true)
	if err != nil {
		return nil, nil, err
	}
	return &fakeContainer{f, pid, gate}, &engine.Process{Pid: pid}, f.done("created", pid)
}

func (f *fake) Restore(ctx context.Context, s *engine.Create, _ *engine.Restore) (engine.Container, *engine.Process, error) {
	c, p, err := f.Create(ctx, s)
	if err == nil {
		c.(*fakeContainer).gate.Close()
	}
	return c, p, err
}
func (f *fake) Find(string, string) engine.Container          { return &fakeContainer{fake: f} }
func (f *fake) Remove(context.Context, string) error          { return nil }
func (f *fake) Features(context.Context) ([]byte, error)      { return nil, nil }
func (c *fakeContainer) Pause(context.Context) error          { return c.done("pause", c.pid) }
func (c *fakeContainer) Resume(context.Context) error         { return c.done("resume", c.pid) }
func (c *fakeContainer) Update(context.Context, []byte) error { return c.done("update", c.pid) }
func (c *fakeContainer) Pids(context.Context) ([]int, error)  { return []int{c.pid}, nil }
func (c *fakeContainer) Checkpoint(context.Context, *engine.Checkpoint) error {
	return c.done("checkpoint", c.pid)
}

func (c *fakeContainer) Start(context.Context) error {
	c.gate.Close()
	return c.done("start", c.pid)
}

func (c *fakeContainer) Kill(_ context.Context, sig syscall.Signal, _ bool) error {
	if err := unix.Kill(c.pid, sig); errors.Is(err, unix.ESRCH) {
		return engine.ErrNotRunning
	}
	return nil
}

func (c *fakeContainer) Delete(_ context.Context, force bool) error {
	if force {
		unix.Kill(c.pid, unix.SIGKILL)
	}
	c.gate.Close()
	return c.done("delete", c.pid)
}

func (c *fakeContainer) FinishStart(context.Context) error { return nil }

func (c *fakeContainer) Rejoin(context.Context, *engine.Exec, *engine.Process, engine.Held) error {
	return errors.ErrUnsupported
}

func (c *fakeContainer) Exec(_ context.Context, s *engine.Exec) (*engine.Process, error) {
	if err := c.fail["exec"]; err != nil {
		return nil, err
	}
	pid, gate, err := c.spawn(string(s.Process), false)
	if err != nil {
		return nil, err
	}
	gate.Close()
	made := &engine.Process{Pid: pid}
	if s.Stdio.Terminal {
		if made.Console, err = terminal(); err != nil {
			return nil, err
		}
	}
	return made, c.done("exec", pid)
}

// terminal is the master of a terminal that everything has left again.
func terminal() (*os.File, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	master := os.NewFile(uintptr(fd), "terminal")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		master.Close()
		return nil, err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		var slave int
		if slave, err = unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0); err == nil {
			err = unix.Close(slave)
		}
	}
	if err != nil {
		master.Close()
		return nil, err
	}
	return master, nil
}

// world is a service with a fake engine, and the events that it has published.
type world struct {
	*Service
	t      *testing.T
	engine *fake
	bundle string
	asked  options.Options // of the engine

	mu   sync.Mutex
	seen []string
	left chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	r, err := startReaper()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, engine: &fake{script: "exit 0", fail: map[string]error{}}, bundle: t.TempDir(), left: make(chan struct{})}
	if err := os.WriteFile(filepath.Join(w.bundle, "config.json"), []byte(`{"linux":{"namespaces":[{"type":"pid"}]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Service = New(Config{
		Namespace: "ns", Reaper: r, Publish: func(e wire.Event, _ ...keeper.Change) { w.publish(e) }, Log: func(s string) { t.Log(s) },
		Engine: func(o *options.Options) (engine.Engine, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.asked = *o
			return w.engine, nil
		},
		Cgroup:   func(int) (engine.Cgroup, error) { return nil, errors.New("none here") },
		Shutdown: func() { close(w.left) },
	})
	return w
}

func (w *world) publish(e wire.Event) {
	text := strings.TrimPrefix(e.Topic(), "/tasks/")
	switch m := e.(type) {
	case *wire.TaskExit:
		text = fmt.Sprintf("exit %s %d", m.ID, m.ExitStatus)
	case *wire.TaskDelete:
		text = strings.TrimSpace("delete " + m.ID)
	case *wire.TaskExecStarted:
		text += " " + m.ExecID
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, text)
}

func (w *world) events(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := strings.Join(w.seen, ", "); got != strings.Join(want, ", ") {
		w.t.Errorf("events: %s\n  want: %s", got, strings.Join(want, ", "))
	}
}

// call is a call as it comes over the wire.
func call[T any, P interface {
	*T
	wire.Message
}](w *world, f func(context.Context, P) (wire.Message, error), req P) error {
	_, err := Method(f)(context.Background(), wire.Marshal(req))
	return err
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) code(what string, err error, want ttrpc.Code) {
	w.t.Helper()
	if err == nil || ttrpc.CodeOf(err) != want {
		w.t.Errorf("%s: %v, want code %d", what, err, want)
	}
}

func (w *world) make(id string) error {
	return call(w, w.create, &wire.CreateTaskRequest{ID: id, Bundle: w.bundle})
}
func (w *world) begin(id, exec string) error {
	return call(w, w.start, &wire.StartRequest{ID: id, ExecID: exec})
}
func (w *world) add(id, exec, script string) error {
	return call(w, w.exec, &wire.ExecProcessRequest{ID: id, ExecID: exec, Spec: &wire.Any{Value: []byte(script)}})
}
func (w *world) drop(id, exec string) error {
	return call(w, w.delete, &wire.DeleteRequest{ID: id, ExecID: exec})
}

func (w *world) waitFor(id, exec string) uint32 {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	answer, err := w.wait(ctx, &wire.WaitRequest{ID: id, ExecID: exec})
	w.must(err)
	return answer.(*wire.WaitResponse).ExitStatus
}

// zombie waits until a process has ended, without reaping it.
func zombie(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	for {
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); err != unix.EINTR {
			return
		}
	}
}
