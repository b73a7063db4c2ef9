package task

import (
	"context"
	"path/filepath"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/stdio"
)

func (s *Service) start(ctx context.Context, r *wire.StartRequest) (wire.Message, error) {
	c, p, err := s.findProcess(r.ID, r.ExecID)
	if err != nil {
		return nil, err
	}
	if p.execID != "" {
		err = c.startExec(ctx, p)
	} else if !ttrpc.Resumed(ctx) || !c.initRuns() {
		err = c.startInit(context.WithoutCancel(ctx))
		if err != nil && ttrpc.Resumed(ctx) && c.initRuns() && c.finishInit(context.WithoutCancel(ctx)) == nil {
			err = nil // the word of the shim before came first
		}
	} else {
		err = c.finishInit(context.WithoutCancel(ctx))
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return &wire.StartResponse{Pid: uint32(p.pid)}, nil
}

func (c *container) startInit(ctx context.Context) error {
	c.change.Lock()
	defer c.change.Unlock()
	p := c.init
	c.mu.Lock()
	err := c.begin(p)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if c.restore != nil {
		// The container begins to exist only now. One that could not be restored may be tried
		// again.
		if err = c.makeInit(ctx); err == nil {
			c.restore = nil
			p.io.Lead()
		}
	} else {
		release := c.service.Reaper.Hold() // hooks, and an init that ends at once
		err = c.handle.Start(ctx)
		release()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		p.state = created
		c.settle(p)
		return err
	}
	p.state = running
	c.publish(&wire.TaskStart{ContainerID: c.id, Pid: uint32(p.pid)})
	c.settle(p)
	return nil
}

// begin moves a process from created to starting. From then on its exit is held
// back until the start has been published.
// The container's lock must be held.
func (c *container) begin(p *process) error {
	if err := p.startable(); err != nil {
		return err
	}
	p.state = starting
	return nil
}

func (p *process) startable() error {
	if p.state != created || p.ended {
		return Failf(ttrpc.FailedPrecondition, "process %q of container %q is %s and cannot be started", p.eventID(), p.container.id, p.status())
	}
	return nil
}

func (s *Service) exec(ctx context.Context, r *wire.ExecProcessRequest) (wire.Message, error) {
	c, err := s.find(r.ID)
	if err != nil {
		return nil, err
	}
	if r.ExecID == "" || filepath.Base(r.ExecID) != r.ExecID {
		return nil, Failf(ttrpc.InvalidArgument, "%q cannot be the id of an exec", r.ExecID)
	}
	if r.Spec == nil {
		return nil, Failf(ttrpc.InvalidArgument, "exec %q has no process", r.ExecID)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.execs[r.ExecID] != nil && ttrpc.Resumed(ctx) {
		return &wire.Empty{}, nil
	}
	if c.execs[r.ExecID] != nil || r.ExecID == c.id {
		return nil, Failf(ttrpc.AlreadyExists, "exec %q of container %q exists already", r.ExecID, c.id)
	}
	if err := c.execAllowed(); err != nil {
		return nil, err
	}
	p := c.newProcess(r.ExecID, stdio.Config{Stdin: r.Stdin, Stdout: r.Stdout, Stderr: r.Stderr, Terminal: r.Terminal})
	p.spec = r.Spec.Value
	c.execs[r.ExecID] = p
	c.publish(&wire.TaskExecAdded{ContainerID: c.id, ExecID: r.ExecID})
	return &wire.Empty{}, nil
}

// execAllowed says why no process can be added to the container, if so. The
// container's lock must be held.
func (c *container) execAllowed() error {
	switch {
	case c.init.ended || c.init.state == stopped:
		return Failf(ttrpc.FailedPrecondition, "container %q has stopped: no exec is possible", c.id)
	case c.paused || c.pausing:
		return Failf(ttrpc.FailedPrecondition, "container %q is paused: no exec is possible", c.id)
	case c.handle == nil:
		return Failf(ttrpc.FailedPrecondition, "container %q is not restored yet: no exec is possible", c.id)
	}
	return nil
}
