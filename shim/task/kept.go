package task

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
	"github.com/berth-runtime/berth/shim/mounts"
)

// keep writes the container into the keeper's memory, if there is one. The lock must be held.
func (c *container) keep() {
	if c.slot != nil {
		c.service.Memory.Commit(c.kept())
	}
}

// keep does so with all that is about no container. The service's lock must be held.
func (s *Service) keep() {
	if s.slot != nil {
		s.slot.Put(keeper.Service, wire.Marshal(s.handover()))
	}
}

// Keep writes all of a suspended service into the keeper's memory, also what is too much for each
// change. It reports false if there is what cannot be kept there.
func (s *Service) Keep() bool {
	for _, c := range s.containers {
		if c.cgroup != nil {
			c.cgroup.Handover() // reads it, for what is noted of it then
		}
		s.Memory.Commit(c.kept())
	}
	for _, p := range s.processes() {
		if p.io != nil && !p.io.Kept() {
			return false
		}
	}
	return true
}

// publish queues an event, and keeps what has come of it. The lock must be held.
func (c *container) publish(e wire.Event, with ...keeper.Change) {
	c.service.Publish(e, append(with, c.kept())...)
}

func (c *container) kept() keeper.Change {
	if c.slot == nil {
		return keeper.Change{}
	}
	h := c.handover()
	if c.cgroup != nil {
		h.Cgroup = c.cgroup.Noted() // to read it takes longer than all the rest
	}
	h.Processes = append(h.Processes, c.init.handover(nil))
	for _, p := range c.execs {
		h.Processes = append(h.Processes, p.handover(nil))
	}
	return keeper.Change{Slot: c.slot, Kind: keeper.Container, Data: wire.Marshal(h)}
}

// Kept is what a shim that was killed has left in the keeper's memory, for TakeOver. first is the
// container that it was started for.
func Kept(m *keeper.Memory, first string) (*wire.HandoverTasks, error) {
	h := new(wire.HandoverTasks)
	for _, p := range m.Pieces(keeper.Service) {
		if err := wire.Unmarshal(p.Data, h); err != nil {
			return nil, fmt.Errorf("read what the shim before has left: %w", err)
		}
		h.Slot = p.Number()
	}
	type place struct{ container, exec string }
	streams := make(map[place]*wire.HandoverIO)
	for _, p := range m.Pieces(keeper.Streams) {
		var k wire.KeptStreams
		if wire.Unmarshal(p.Data, &k) != nil || k.IO == nil {
			continue
		}
		k.IO.Slot = p.Number()
		streams[place{k.Container, k.ExecID}] = k.IO
	}
	for _, piece := range m.Pieces(keeper.Container) {
		c := new(wire.HandoverContainer)
		if wire.Unmarshal(piece.Data, c) != nil {
			continue
		}
		c.Slot = piece.Number()
		for _, p := range c.Processes {
			at := place{c.ID, p.ExecID}
			p.IO = streams[at]
			delete(streams, at)
			if p.IO == nil && (p.Child || p.ExecID == "") {
				p.IO = &wire.HandoverIO{Started: true, Closed: true}
			}
		}
		h.Containers = append(h.Containers, c)
	}
	for _, io := range streams { // of what had not been made yet
		for _, o := range io.Outputs {
			if o.Stage != nil {
				m.At(o.Stage.Slot).Drop()
			}
		}
		m.At(io.Slot).Drop()
	}
	if len(h.Containers)+len(h.Expected) == 0 && h.Sandbox == "" && !h.Asked {
		h.First, h.FirstLeft = first, int64(expectation) // its create was cut off
	}
	return h, nil
}

// Revive does what a shim that was killed could not do any more about ends that it knew of. It is
// called after Resume.
func (s *Service) Revive() {
	s.mu.Lock()
	all := s.processes()
	s.mu.Unlock()
	for _, p := range all {
		c := p.container
		c.resolve(p)
		c.mu.Lock()
		again := p.ended && !p.settled
		if !again {
			c.settle(p)
		}
		begun := p.heldFile != nil
		c.mu.Unlock()
		if begun { // its client may be gone, and its call with it
			s.work.do(func() { _ = c.startExec(context.Background(), p) })
		}
		if again {
			p.onExit(p.exit)
		}
	}
}

// resolve ends the starting of a process that no call may ever go on with, as its client can be
// gone: neither its own end is told of while it is starting, nor the container's.
func (c *container) resolve(p *process) {
	c.mu.Lock()
	starting := p.state == starting && p.heldFile == nil
	c.mu.Unlock()
	switch {
	case !starting:
	case p.execID == "" && c.initRuns():
		c.service.work.do(func() { _ = c.finishInit(context.Background()) })
	default:
		c.hasStarted(p)
	}
}

// Redone is called when the calls that were cut off have been made again.
func (s *Service) Redone() { s.leaveIfDone() }

// Undo removes what has been made of a container, or a sandbox, when the shim was killed in the
// middle of that.
func (s *Service) Undo(ctx context.Context, eng engine.Engine, id, dir string) error {
	release := s.Reaper.Hold()
	defer release()
	if err := eng.Remove(context.WithoutCancel(ctx), id); err != nil {
		return err
	}
	return mounts.Unmount(filepath.Join(dir, "rootfs"))
}

// hasStarted says whether a process has been started by a shim that was killed before it could say
// so, and takes note of that.
func (c *container) hasStarted(p *process) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch p.state {
	case running, stopped:
		return !p.failed
	case created:
		if p.execID != "" || !c.pastGate() {
			return false
		}
	case starting:
		if p.execID == "" && !c.pastGate() {
			p.state = created
			return false
		}
		if p.child == nil {
			p.state = created
			return false
		}
		if p.heldFile != nil {
			return false // it may have
		}
	}
	p.state = running
	if p.execID == "" {
		c.publish(&wire.TaskStart{ContainerID: c.id, Pid: uint32(p.pid)})
	} else {
		c.publish(&wire.TaskExecStarted{ContainerID: c.id, ExecID: p.execID, Pid: uint32(p.pid)})
	}
	c.settle(p)
	return true
}

// pastGate says whether the container's first process has executed its program. The lock must be
// held.
func (c *container) pastGate() bool {
	return c.init.child != nil && (c.init.ended || !AtGate(c.init.pid))
}

// initRuns says whether a shim that was killed has started the container, whether or not it could
// say so.
func (c *container) initRuns() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.init.state {
	case created, starting:
		return c.pastGate()
	}
	return !c.init.failed
}

// finishInit does what such a shim has left to be done, before that is said.
func (c *container) finishInit(ctx context.Context) error {
	c.change.Lock()
	defer c.change.Unlock()
	p := c.init
	c.mu.Lock()
	told := p.state == running || p.state == stopped
	if !told {
		p.state = starting
	}
	c.mu.Unlock()
	if told {
		return nil
	}
	release := c.service.Reaper.Hold() // hooks
	err := c.handle.FinishStart(ctx)
	release()
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		p.state = created
		c.settle(p)
		return err
	}
	c.hasStarted(p)
	return nil
}

// AtGate says whether a container's first process has yet to execute its program.
func AtGate(pid int) bool {
	path, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	return err == nil && strings.HasPrefix(path, "/memfd:berth-init")
}
