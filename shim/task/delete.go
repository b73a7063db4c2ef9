package task

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-runtime/berth/shim/internal/bundle"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
	"github.com/berth-runtime/berth/shim/mounts"
)

func (s *Service) delete(ctx context.Context, r *wire.DeleteRequest) (wire.Message, error) {
	if err := s.awaitCreate(ctx, r.ID); err != nil {
		return nil, err
	}
	c, p, err := s.findProcess(r.ID, r.ExecID)
	if err != nil {
		return nil, err
	}
	// A client that has gone away must not leave half of a container behind.
	ctx = context.WithoutCancel(ctx)
	if p.execID != "" {
		err = c.deleteExec(p, func() keeper.Change { return ttrpc.Answered(ctx, p.deleted()) })
	} else {
		err = c.deleteInit(ctx, func() keeper.Change { return ttrpc.Answered(ctx, p.deleted()) })
	}
	if err != nil {
		return nil, err
	}
	return p.deleted(), nil
}

// deleted is the answer to the deletion of a process.
func (p *process) deleted() *wire.DeleteResponse {
	return &wire.DeleteResponse{Pid: uint32(p.pid), ExitStatus: uint32(p.exit.Status), ExitedAt: wire.Time(p.exit.At)}
}

// deleteInit deletes the container. answered is made at the instant that it is known no more, for
// who asks again could not be told.
func (c *container) deleteInit(ctx context.Context, answered func() keeper.Change) error {
	c.change.Lock()
	defer c.change.Unlock()
	p := c.init
	c.mu.Lock()
	before, ended, gone, now := p.state, p.ended, p.child == nil, p.status()
	c.mu.Unlock()
	if _, err := c.service.find(c.id); err != nil {
		return err // deleted while this waited
	}
	switch {
	case before == running && !ended || before == starting:
		return Failf(ttrpc.FailedPrecondition, "container %q is %s: it must be stopped before it is deleted", c.id, now)
	case before == running:
		<-p.done // its exit is about to be published
	case before == created && !gone:
		// Never started: its init is killed by the deletion.
		release := c.service.Reaper.Hold()
		err := c.handle.Delete(ctx, true)
		release()
		if err != nil {
			return err
		}
		<-p.done
	}
	p.io.Drain()
	if c.handle != nil {
		release := c.service.Reaper.Hold() // hooks
		err := c.handle.Delete(ctx, false)
		if ttrpc.Resumed(ctx) && errors.Is(err, fs.ErrNotExist) {
			err = c.handle.Delete(ctx, true) // the shim before was killed in the middle of it
		}
		release()
		if err != nil {
			return err
		}
	}
	if err := mounts.Unmount(filepath.Join(c.bundle, "rootfs")); err != nil {
		return err
	}
	c.letGo()
	if c.leader != "" {
		bundle.RemoveMember(c.leader, c.id)
	}
	c.mu.Lock()
	forgotten := keeper.Change{Slot: c.slot}
	c.slot = nil
	c.service.Publish(&wire.TaskDelete{
		ContainerID: c.id, Pid: uint32(p.pid), ExitStatus: uint32(p.exit.Status), ExitedAt: wire.Time(p.exit.At),
	}, forgotten, answered())
	c.mu.Unlock()
	c.service.forget(c)
	return nil
}

// letGo closes what is held of a container that has ended, and of execs that no client has deleted.
func (c *container) letGo() {
	c.init.io.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaveCgroup()
	for _, p := range c.execs {
		if p.io != nil {
			p.io.Close()
		}
	}
}

func (c *container) deleteExec(p *process, answered func() keeper.Change) error {
	p.start.Lock()
	defer p.start.Unlock()
	c.mu.Lock()
	before, ended := p.state, p.ended
	known := c.execs[p.execID] == p
	c.mu.Unlock()
	switch {
	case !known:
		return Failf(ttrpc.NotFound, "exec %q of container %q has been deleted", p.execID, c.id)
	case before == starting || before == running && !ended:
		return Failf(ttrpc.FailedPrecondition, "exec %q of container %q is running: it must be stopped before it is deleted", p.execID, c.id)
	case before == running:
		<-p.done
	}
	if p.io != nil {
		p.io.Drain()
		p.io.Close()
	}
	os.Remove(c.pidFile(p.execID))
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.execs, p.execID)
	c.publish(&wire.TaskDelete{
		ContainerID: c.id, ID: p.execID, Pid: uint32(p.pid), ExitStatus: uint32(p.exit.Status), ExitedAt: wire.Time(p.exit.At),
	}, answered())
	return nil
}
