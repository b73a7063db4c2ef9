package task

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/keeper"
)

// Lead makes a sandbox, by its bundle, the leader of all containers of this
// shim, which from now on stays until Leave.
func (s *Service) Lead(sandbox string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return Failf(ttrpc.Unavailable, "the shim is about to leave")
	}
	s.sandbox, s.first = sandbox, ""
	s.keep()
	return nil
}

// StopAll asks every container to end, and kills what is left of each after a time.
func (s *Service) StopAll(ctx context.Context, grace time.Duration) {
	var all sync.WaitGroup
	for _, c := range s.all() {
		all.Add(1)
		go func() {
			defer all.Done()
			c.stop(ctx, grace)
		}()
	}
	all.Wait()
}

// Leave removes every container that is left, and has the shim leave.
func (s *Service) Leave(ctx context.Context) {
	s.StopAll(ctx, 0)
	for _, c := range s.all() {
		if err := c.deleteInit(ctx, func() keeper.Change { return keeper.Change{} }); err != nil {
			s.Log("remove container " + c.id + ": " + err.Error())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.closing = true
		go s.Shutdown()
	}
}

func (s *Service) all() (list []*container) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.containers {
		if c.made {
			list = append(list, c)
		}
	}
	return list
}

// stop ends a container, as far as it can be ended.
func (c *container) stop(ctx context.Context, grace time.Duration) {
	c.mu.Lock()
	handle, p := c.handle, c.init
	c.mu.Unlock()
	if handle == nil {
		return // not restored yet
	}
	if grace > 0 && handle.Kill(ctx, unix.SIGTERM, false) == nil {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.done:
			return
		case <-ctx.Done():
		case <-timer.C:
		}
	}
	ctx = context.WithoutCancel(ctx)
	if err := handle.Kill(ctx, unix.SIGKILL, true); err != nil {
		c.mu.Lock()
		ended := p.ended
		c.mu.Unlock()
		if !ended {
			c.service.Log("kill container " + c.id + ": " + err.Error())
			return
		}
	}
	c.thaw(ctx)
	<-p.done
}

// thaw lets a paused container be killed: the freezer of cgroup v1 keeps even a
// SIGKILL from being delivered.
func (c *container) thaw(ctx context.Context) {
	c.mu.Lock()
	handle, paused := c.handle, c.paused || c.pausing
	c.mu.Unlock()
	if paused {
		handle.Resume(ctx)
	}
}
