package linked

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/engine/view"
	"github.com/berth-runtime/berth/internal/settings"
	"github.com/berth-runtime/berth/shim/engine"
)

// Engine is the engine for the containers of one state directory.
type Engine struct {
	runtime *container.Runtime
}

// New makes an engine that makes cgroups by the settings. warn is told what is odd but no error.
func New(root string, s settings.Settings, warn func(string)) *Engine {
	return &Engine{&container.Runtime{
		Root: root, Driver: s.Driver, Parent: s.Parent, Supervisor: "/proc/self/exe", LearnIn: s.Learn, Warn: warn,
	}}
}

// descriptors gives a process's streams to the engine, and the terminal's
// master, if there is one, to p.
func descriptors(stdio engine.Stdio, p *engine.Process) (container.IO, func(), error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return container.IO{}, nil, err
	}
	var c container.IO
	for i, f := range []*os.File{stdio.In, stdio.Out, stdio.Err} {
		if f == nil {
			f = null
		}
		c.Stdio[i] = f.Fd()
	}
	if stdio.Terminal {
		c.Console = func(master *os.File) error {
			p.Console = master
			return nil
		}
	}
	return c, func() { null.Close() }, nil
}

// Create makes a container.
func (e *Engine) Create(_ context.Context, s *engine.Create) (engine.Container, *engine.Process, error) {
	return e.bring(s, func(o container.CreateOptions) (*container.Created, error) { return e.runtime.Create(s.ID, &o) })
}

// bring has a container made, by one way or another, and lets go of its process.
func (e *Engine) bring(s *engine.Create, do func(container.CreateOptions) (*container.Created, error)) (engine.Container, *engine.Process, error) {
	p := new(engine.Process)
	stdio, release, err := descriptors(s.Stdio, p)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	made, err := do(container.CreateOptions{
		Bundle: s.Bundle, IO: stdio, PidFile: filepath.Join(s.Bundle, "init.pid"),
		NoPivot: s.NoPivotRoot, NoNewKeyring: s.NoNewKeyring,
	})
	if err != nil {
		if p.Console != nil {
			p.Console.Close()
		}
		return nil, nil, kind(err)
	}
	p.Pid = made.Pid
	made.Process().Detach()
	made.Close()
	return &handle{runtime: e.runtime, id: s.ID}, p, nil
}

// Find gives a container that was made before.
func (e *Engine) Find(id, _ string) engine.Container { return &handle{runtime: e.runtime, id: id} }

// Remove kills and removes what is left of a container.
func (e *Engine) Remove(ctx context.Context, id string) error {
	return (&handle{runtime: e.runtime, id: id}).Delete(ctx, true)
}

// Features describes what this build can do.
func (e *Engine) Features(context.Context) ([]byte, error) {
	return view.FormatFeatures(view.Features(nil), ""), nil
}

// handle is one container.
type handle struct {
	runtime *container.Runtime
	id      string
	// entry keeps a pause away from what starts a process in the container. That would
	// begin in a frozen cgroup, and until its execve a thread of ours waits for it, and
	// all of Go with that (CLONE_VFORK): no thread would be left to thaw it.
	entry sync.RWMutex
}

// with calls the engine with the container.
func (h *handle) with(do func(*container.Container) error) error {
	c, err := h.runtime.Load(h.id)
	if err != nil {
		return kind(err)
	}
	defer c.Close()
	return kind(do(c))
}

// kind lets callers branch on the engine's errors without knowing the engine.
func kind(err error) error {
	var complaints spec.Errors
	switch {
	case errors.As(err, &complaints):
		return fmt.Errorf("%w%w", err, hidden{engine.ErrInvalid})
	case errors.Is(err, container.ErrNotExist):
		return fmt.Errorf("%w%w", err, hidden{engine.ErrNotFound})
	case errors.Is(err, container.ErrPaused), errors.Is(err, container.ErrNotPaused):
		return fmt.Errorf("%w%w", err, hidden{engine.ErrAlready})
	case errors.Is(err, container.ErrNotRunning):
		return fmt.Errorf("%w%w", err, hidden{engine.ErrNotRunning})
	}
	return err
}

// hidden is an error that can be asked for but is not read.
type hidden struct{ error }

func (hidden) Error() string   { return "" }
func (h hidden) Unwrap() error { return h.error }

func (h *handle) Start(context.Context) error { return h.with((*container.Container).Start) }
func (h *handle) FinishStart(context.Context) error {
	return h.with((*container.Container).FinishStart)
}
func (h *handle) Resume(context.Context) error { return h.with((*container.Container).Resume) }

func (h *handle) Pause(context.Context) error {
	h.entry.Lock()
	defer h.entry.Unlock()
	return h.with((*container.Container).Pause)
}

func (h *handle) Kill(_ context.Context, sig syscall.Signal, all bool) error {
	return h.with(func(c *container.Container) error { return c.Kill(unix.Signal(sig), all) })
}

// Delete takes no longer than ctx allows for the end of the container's process,
// which others may hold up.
func (h *handle) Delete(ctx context.Context, force bool) error {
	runtime := *h.runtime
	if end, limited := ctx.Deadline(); limited {
		runtime.EndLimit = max(time.Until(end), time.Millisecond)
	}
	c, err := runtime.LoadForDelete(h.id)
	if errors.Is(err, container.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Delete(force)
}

func (h *handle) Pids(context.Context) (pids []int, err error) {
	err = h.with(func(c *container.Container) (err error) {
		pids, err = c.Pids()
		return err
	})
	return pids, err
}

func (h *handle) Update(_ context.Context, resources []byte) error {
	limits, err := spec.ParseResources(resources)
	if err != nil {
		return kind(fmt.Errorf("resources: %w", err))
	}
	return h.with(func(c *container.Container) error { return c.Update(&container.Changes{Resources: limits}) })
}
