package linked

import (
	"context"
	"fmt"

	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/launch"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/shim/engine"
)

// Exec starts a process.
func (h *handle) Exec(_ context.Context, s *engine.Exec) (*engine.Process, error) {
	process, err := spec.ParseProcess(s.Process)
	if err != nil {
		return nil, kind(fmt.Errorf("process of exec %s: %w", s.ID, err))
	}
	process.Terminal = s.Stdio.Terminal
	p := new(engine.Process)
	stdio, release, err := descriptors(s.Stdio, p)
	if err != nil {
		return nil, err
	}
	defer release()
	o := &container.ExecOptions{IO: stdio, Process: process, PidFile: s.PidFile, Done: s.Done}
	if s.Held != nil {
		o.Held = func(held launch.Held) error {
			p.Pid = held.Pid
			return s.Held(p, engine.Held{Socket: held.Socket, Name: held.Name})
		}
	}
	h.entry.RLock()
	defer h.entry.RUnlock()
	err = h.with(func(c *container.Container) error {
		child, err := c.Exec(o)
		if err == nil {
			p.Pid = child.Pid
			child.Detach()
		}
		return err
	})
	if err != nil {
		if p.Console != nil {
			p.Console.Close()
		}
		return nil, err
	}
	return p, nil
}

// Rejoin goes on with a process that another program of this shim has begun to start.
func (h *handle) Rejoin(_ context.Context, s *engine.Exec, p *engine.Process, held engine.Held) error {
	process, err := spec.ParseProcess(s.Process)
	if err != nil {
		return kind(fmt.Errorf("process of exec %s: %w", s.ID, err))
	}
	process.Terminal = false // it has its terminal
	h.entry.RLock()
	defer h.entry.RUnlock()
	return h.with(func(c *container.Container) error {
		return c.Rejoin(&container.ExecOptions{Process: process}, launch.Held{Pid: p.Pid, Socket: held.Socket, Name: held.Name})
	})
}
