package task

import (
	"errors"
	"fmt"
	"time"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/bundle"
	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/reaper"
	"github.com/berth-runtime/berth/shim/stdio"
)

// Settled waits until nothing goes on that no call waits for, such as what an end brings with it.
// There must be no calls.
func (s *Service) Settled(limit time.Duration) error {
	if !s.work.wait(limit) {
		return errors.New("the shim is busy with the end of a process")
	}
	return nil
}

// Suspend stops all that changes a container, until Resume. There must be no calls, and the reaper
// must be suspended. After an error all goes on as before.
func (s *Service) Suspend(limit time.Duration) error {
	if err := s.Settled(0); err != nil {
		return err // an end was told of since
	}
	// From here on nothing is told of want of memory, and no timer ends the shim.
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return errors.New("the shim is about to leave")
	}
	for _, c := range s.containers {
		c.mu.Lock()
	}
	for _, p := range s.processes() {
		if p.io == nil {
			continue
		}
		if err := p.io.Suspend(limit); err != nil {
			s.Resume()
			return fmt.Errorf("the shim is busy: %w", err)
		}
	}
	return nil
}

// Resume goes on after Suspend, or after TakeOver.
func (s *Service) Resume() {
	for _, p := range s.processes() {
		if p.io != nil {
			p.io.Resume()
		}
	}
	all := make([]*container, 0, len(s.containers))
	for _, c := range s.containers {
		all = append(all, c)
		c.mu.Unlock()
	}
	s.mu.Unlock()
	for _, c := range all {
		if c.anew {
			c.anew = false
			c.mu.Lock()
			c.watchOOM(c.cgroup)
			c.mu.Unlock()
			c.tellOOM() // what has come meanwhile
		}
	}
}

// processes are those of all containers. The service's lock must be held.
func (s *Service) processes() (list []*process) {
	for _, c := range s.containers {
		list = append(list, c.init)
		for _, p := range c.execs {
			list = append(list, p)
		}
	}
	return list
}

// Handover writes a suspended service down.
func (s *Service) Handover(t *fds.Table) *wire.HandoverTasks {
	h := s.handover()
	for _, c := range s.containers {
		one := c.handover()
		if c.cgroup != nil {
			one.Cgroup = c.cgroup.Handover()
		}
		one.Processes = append(one.Processes, c.init.handover(t))
		for _, p := range c.execs {
			one.Processes = append(one.Processes, p.handover(t))
		}
		h.Containers = append(h.Containers, one)
	}
	return h
}

// handover is all but the containers. The lock must be held.
func (s *Service) handover() *wire.HandoverTasks {
	h := &wire.HandoverTasks{First: s.first, Sandbox: s.sandbox, Asked: s.asked}
	if s.first != "" {
		h.FirstLeft = int64(max(time.Until(s.began.Add(expectation)), 1))
	}
	for id, until := range s.expected {
		h.Expected = append(h.Expected, &wire.HandoverExpected{ID: id, Left: int64(max(time.Until(until), 1))})
	}
	return h
}

// handover is all but the cgroup and the processes.
func (c *container) handover() *wire.HandoverContainer {
	h := &wire.HandoverContainer{
		ID: c.id, Bundle: c.bundle, Leader: c.leader, Options: c.options.Handover(), Group: c.config.Group, SharedPid: c.config.SharedPid,
		Made: c.handle != nil, Paused: c.paused, OOMKills: c.oomKills, OOMTold: c.oomTold,
	}
	if r := c.restore; r != nil {
		h.Restore = &wire.HandoverRestore{Image: r.Image, Parent: r.Parent, Work: r.Work}
	}
	return h
}

// handover writes a process down, without its streams if there is no table.
func (p *process) handover(t *fds.Table) *wire.HandoverProcess {
	h := &wire.HandoverProcess{
		ExecID: p.execID, Stdin: p.config.Stdin, Stdout: p.config.Stdout, Stderr: p.config.Stderr, Terminal: p.config.Terminal,
		Spec: p.spec, State: uint32(p.state), Pid: uint32(p.pid), Child: p.child != nil, Ended: p.ended,
		Status: uint32(p.exit.Status), At: wire.Time(p.exit.At), Failed: p.failed, Settled: p.settled,
		HeldSocket: uint32(p.held.Socket), HeldName: p.held.Name,
	}
	if p.io != nil && t != nil {
		h.IO = p.io.Handover(t)
	}
	return h
}

// TakeOver makes the service that Handover has written down. It is suspended.
func TakeOver(config Config, h *wire.HandoverTasks, t *fds.Table) (*Service, error) {
	if h == nil {
		return nil, errors.New("there are no containers in the state")
	}
	s := empty(config)
	s.mu.Lock() // until Resume
	s.first, s.sandbox, s.asked, s.slot = h.First, h.Sandbox, h.Asked, s.Memory.At(h.Slot)
	if s.first != "" {
		s.began = time.Now().Add(time.Duration(h.FirstLeft) - expectation)
		time.AfterFunc(time.Duration(h.FirstLeft), s.nobodyCame)
	}
	for _, e := range h.Expected {
		s.expected[e.ID] = time.Now().Add(time.Duration(e.Left))
		time.AfterFunc(time.Duration(e.Left), s.leaveIfDone)
	}
	for _, one := range h.Containers {
		c, err := s.takeOver(one, t)
		if err != nil {
			return nil, fmt.Errorf("container %s: %w", one.ID, err)
		}
		s.containers[c.id] = c
	}
	return s, nil
}

func (s *Service) takeOver(h *wire.HandoverContainer, t *fds.Table) (*container, error) {
	o := options.TakeOver(h.Options)
	eng, err := s.Engine(o)
	if err != nil {
		return nil, err
	}
	c := &container{
		service: s, id: h.ID, bundle: h.Bundle, leader: h.Leader, options: o, engine: eng,
		config: &bundle.Config{Group: h.Group, SharedPid: h.SharedPid},
		made:   true, making: make(chan struct{}), execs: make(map[string]*process),
		paused: h.Paused, oomKills: h.OOMKills, oomTold: h.OOMTold,
	}
	close(c.making)
	c.slot = s.Memory.At(h.Slot)
	c.mu.Lock()
	if r := h.Restore; r != nil {
		c.restore = &engine.Restore{Image: r.Image, Parent: r.Parent, Work: r.Work}
	}
	if h.Made {
		c.handle = eng.Find(c.id, c.bundle)
	}
	for _, one := range h.Processes {
		p, err := c.takeOver(one, t)
		if err != nil {
			return nil, fmt.Errorf("process %q: %w", one.ExecID, err)
		}
		if p.execID == "" {
			c.init = p
		} else {
			c.execs[p.execID] = p
		}
	}
	if c.init == nil {
		return nil, errors.New("there is no init in the state")
	}
	if h.Cgroup != nil {
		if c.cgroup, err = s.FindCgroup(h.Cgroup, c.init.pid, c.init.ended); err != nil {
			s.Log("find the cgroup of " + c.id + " again: " + err.Error())
		}
		c.anew = c.cgroup != nil && !h.Cgroup.Closed
	}
	return c, nil
}

func (c *container) takeOver(h *wire.HandoverProcess, t *fds.Table) (_ *process, err error) {
	s := c.service
	p := c.newProcess(h.ExecID, stdio.Config{Stdin: h.Stdin, Stdout: h.Stdout, Stderr: h.Stderr, Terminal: h.Terminal})
	p.spec, p.state, p.pid = h.Spec, state(h.State), int(h.Pid)
	p.ended, p.failed, p.settled = h.Ended, h.Failed, h.Settled
	p.exit = reaper.Exit{Pid: p.pid, Status: int(h.Status), At: h.At.Time()}
	if p.state == stopped {
		close(p.done)
	}
	if e, known := s.Reaper.Noted(p.pid); known && !p.ended {
		p.ended, p.exit = true, e
	}
	switch {
	case !h.Child && p.state == starting && p.pid != 0:
		if err := p.takeHeld(h, t); err != nil {
			return nil, err
		}
	case h.Child:
		if err := p.takeUp(); err != nil {
			return nil, err
		}
	}
	if h.IO != nil {
		p.io, err = stdio.TakeOver(h.IO, p.config, t, s.Reaper, s.Log)
	}
	return p, err
}

// takeUp awaits the end of a process that a shim before has made, or takes note of it.
func (p *process) takeUp() (err error) {
	r := p.container.service.Reaper
	if p.ended {
		p.child = r.Ended(p.exit)
		return nil
	}
	p.child, err = r.Adopt(p.pid, p.onExit)
	return err
}
