package task

import (
	"context"
	"errors"
	"time"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// status is the state of a process as clients see it; it reads as a word. The
// container's lock must be held.
func (p *process) status() status {
	c := p.container
	switch {
	case p.state == stopped && !p.failed:
		return status(wire.StatusStopped)
	case p.state == created, p.failed, p.state == starting && p.child == nil:
		return status(wire.StatusCreated)
	case c.pausing:
		return status(wire.StatusPausing)
	case c.paused:
		return status(wire.StatusPaused)
	case p.state == starting && p.execID == "":
		return status(wire.StatusCreated)
	}
	return status(wire.StatusRunning)
}

type status wire.TaskStatus

func (s status) String() string {
	switch wire.TaskStatus(s) {
	case wire.StatusCreated:
		return "created"
	case wire.StatusRunning:
		return "running"
	case wire.StatusStopped:
		return "stopped"
	case wire.StatusPaused:
		return "paused"
	case wire.StatusPausing:
		return "about to be paused"
	}
	return "in an unknown state"
}

func (s *Service) state(_ context.Context, r *wire.StateRequest) (wire.Message, error) {
	c, p, err := s.findProcess(r.ID, r.ExecID)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := &wire.StateResponse{
		ID: c.id, Bundle: c.bundle, Pid: uint32(p.pid), Status: wire.TaskStatus(p.status()),
		Stdin: p.config.Stdin, Stdout: p.config.Stdout, Stderr: p.config.Stderr, Terminal: p.config.Terminal,
		ExitedAt: wire.Time(time.Time{}), ExecID: p.execID,
	}
	if p.state == stopped {
		answer.ExitStatus, answer.ExitedAt = uint32(p.exit.Status), wire.Time(p.exit.At)
	}
	return answer, nil
}

func (s *Service) wait(ctx context.Context, r *wire.WaitRequest) (wire.Message, error) {
	_, p, err := s.findProcess(r.ID, r.ExecID)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.done:
		return &wire.WaitResponse{ExitStatus: uint32(p.exit.Status), ExitedAt: wire.Time(p.exit.At)}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *Service) pids(ctx context.Context, r *wire.PidsRequest) (wire.Message, error) {
	c, err := s.find(r.ID)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	handle := c.handle
	ended, init := c.init.ended, c.init.pid
	execs := make(map[int]string, len(c.execs))
	for id, p := range c.execs {
		if p.state == running {
			execs[p.pid] = id
		}
	}
	c.mu.Unlock()
	answer := &wire.PidsResponse{}
	if handle == nil {
		return answer, nil
	}
	if ended {
		// containerd 2 asks this of each shim when it starts, takes an empty answer for
		// a shim that has no task, and throws it away, with the status of the task that
		// ended while containerd was down.
		return &wire.PidsResponse{Processes: []*wire.ProcessInfo{{Pid: uint32(init)}}}, nil
	}
	pids, err := handle.Pids(ctx)
	if err != nil {
		return nil, err
	}
	for _, pid := range pids {
		info := &wire.ProcessInfo{Pid: uint32(pid)}
		if id, is := execs[pid]; is {
			info.Info = &wire.Any{TypeURL: wire.ProcessDetailsURL, Value: wire.Marshal(&wire.ProcessDetails{ExecID: id})}
		}
		answer.Processes = append(answer.Processes, info)
	}
	return answer, nil
}

func (s *Service) stats(_ context.Context, r *wire.StatsRequest) (wire.Message, error) {
	c, err := s.find(r.ID)
	if err != nil {
		return nil, err
	}
	kind, message, err := c.readStats()
	if errors.Is(err, engine.ErrNoStats) {
		return nil, Failf(ttrpc.NotFound, "container %q has no cgroup", c.id)
	}
	if err != nil {
		return nil, err
	}
	return &wire.StatsResponse{Stats: &wire.Any{TypeURL: kind, Value: message}}, nil
}

// readStats reads the cgroup, which keeps what it says.
func (c *container) readStats() (typeURL string, message []byte, err error) {
	c.mu.Lock()
	group := c.cgroup
	c.mu.Unlock()
	if group == nil {
		return "", nil, engine.ErrNoStats
	}
	return group.Stats()
}
