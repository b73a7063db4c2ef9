package task

import (
	"context"
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/stdio"
)

func (s *Service) kill(ctx context.Context, r *wire.KillRequest) (wire.Message, error) {
	c, p, err := s.findProcess(r.ID, r.ExecID)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	at, ended, child, handle := p.state, p.ended, p.child, c.handle
	c.mu.Unlock()
	// A signal that was sent by a shim that was killed since may have ended it.
	again := ttrpc.Resumed(ctx)
	if at == stopped || ended {
		if again {
			return &wire.Empty{}, nil
		}
		return nil, Failf(ttrpc.NotFound, "process %q of container %q has ended already", p.eventID(), c.id)
	}
	if child == nil {
		return nil, Failf(ttrpc.FailedPrecondition, "process %q of container %q is not started", p.eventID(), c.id)
	}
	const lastSignal = 64
	if r.Signal > lastSignal {
		return nil, Failf(ttrpc.InvalidArgument, "%d is not a signal: they go up to %d", r.Signal, lastSignal)
	}
	signal := syscall.Signal(r.Signal)
	if p.execID != "" && !r.All {
		if err := child.Signal(signal); errors.Is(err, unix.ESRCH) && !again {
			return nil, Failf(ttrpc.NotFound, "process %q of container %q has ended already", p.eventID(), c.id)
		} else if err != nil && err != unix.ESRCH {
			return nil, Failf(ttrpc.Unknown, "signal %d to process %q of container %q: %w", r.Signal, p.eventID(), c.id, err)
		}
		return &wire.Empty{}, nil
	}
	if err := handle.Kill(ctx, signal, r.All); err != nil && !(again && errors.Is(err, engine.ErrNotRunning)) {
		return nil, err
	}
	if signal == unix.SIGKILL {
		c.thaw(ctx)
	}
	return &wire.Empty{}, nil
}

// doneBefore is no error where a shim that was killed has paused or resumed the container, and
// could not say so any more.
func doneBefore(ctx context.Context, err error) error {
	if ttrpc.Resumed(ctx) && errors.Is(err, engine.ErrAlready) {
		return nil
	}
	return err
}

func (s *Service) pause(ctx context.Context, r *wire.PauseRequest) (wire.Message, error) {
	c, err := s.find(r.ID)
	if err != nil {
		return nil, err
	}
	c.change.Lock()
	defer c.change.Unlock()
	c.mu.Lock()
	if c.paused && ttrpc.Resumed(ctx) {
		defer c.mu.Unlock()
		return &wire.Empty{}, nil
	}
	if c.init.state != running || c.init.ended || c.paused {
		defer c.mu.Unlock()
		return nil, Failf(ttrpc.FailedPrecondition, "container %q is %s and cannot be paused", c.id, c.init.status())
	}
	c.pausing = true
	c.mu.Unlock()
	err = doneBefore(ctx, c.handle.Pause(context.WithoutCancel(ctx)))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pausing = false
	if err != nil {
		return nil, err
	}
	if c.init.state == running {
		c.paused = true
		c.publish(&wire.TaskPaused{ContainerID: c.id})
	}
	return &wire.Empty{}, nil
}

func (s *Service) resume(ctx context.Context, r *wire.ResumeRequest) (wire.Message, error) {
	c, err := s.find(r.ID)
	if err != nil {
		return nil, err
	}
	c.change.Lock()
	defer c.change.Unlock()
	c.mu.Lock()
	if !c.paused && ttrpc.Resumed(ctx) {
		defer c.mu.Unlock()
		return &wire.Empty{}, nil
	}
	if !c.paused {
		defer c.mu.Unlock()
		return nil, Failf(ttrpc.FailedPrecondition, "container %q is %s and cannot be resumed", c.id, c.init.status())
	}
	c.mu.Unlock()
	if err := doneBefore(ctx, c.handle.Resume(context.WithoutCancel(ctx))); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused {
		c.paused = false
		c.publish(&wire.TaskResumed{ContainerID: c.id})
	}
	return &wire.Empty{}, nil
}

func (s *Service) update(ctx context.Context, r *wire.UpdateTaskRequest) (wire.Message, error) {
	c, err := s.find(r.ID)
	if err != nil {
		return nil, err
	}
	if r.Resources == nil {
		return nil, Failf(ttrpc.InvalidArgument, "update of container %q has no resources", c.id)
	}
	c.change.Lock()
	defer c.change.Unlock()
	c.mu.Lock()
	ended, handle, now := c.init.ended, c.handle, c.init.status()
	c.mu.Unlock()
	if ended || handle == nil {
		return nil, Failf(ttrpc.FailedPrecondition, "container %q has no cgroup to update: it is %s", c.id, now)
	}
	if err := handle.Update(context.WithoutCancel(ctx), r.Resources.Value); err != nil {
		return nil, err
	}
	return &wire.Empty{}, nil
}

// ioOf is the streams of a process, nil for one that has not been started.
func (s *Service) ioOf(id, execID string) (*stdio.IO, error) {
	c, p, err := s.findProcess(id, execID)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.io, nil
}

func (s *Service) resizePty(_ context.Context, r *wire.ResizePtyRequest) (wire.Message, error) {
	io, err := s.ioOf(r.ID, r.ExecID)
	if err != nil {
		return nil, err
	}
	if io != nil {
		if err := io.Resize(r.Width, r.Height); err != nil {
			return nil, err
		}
	}
	return &wire.Empty{}, nil
}

func (s *Service) closeIO(_ context.Context, r *wire.CloseIORequest) (wire.Message, error) {
	io, err := s.ioOf(r.ID, r.ExecID)
	if err != nil {
		return nil, err
	}
	if io != nil && r.Stdin {
		io.CloseStdin()
	}
	return &wire.Empty{}, nil
}
