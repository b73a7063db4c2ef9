package task

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

func (c *container) startExec(ctx context.Context, p *process) error {
	p.start.Lock()
	defer p.start.Unlock()
	if ttrpc.Resumed(ctx) && c.hasStarted(p) {
		return nil
	}
	c.mu.Lock()
	begun := p.heldFile != nil
	c.mu.Unlock()
	var err error
	if begun {
		err = c.rejoin(ctx, p)
	} else if err = c.openExec(ctx, p); err == nil {
		err = c.runExec(ctx, p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && p.state != starting {
		return err
	}
	if err != nil {
		// There was no process, and so there is no exit; but a Wait must return.
		p.state, p.failed = stopped, true
		p.exit.Status = 255
		c.keep()
		close(p.done)
		c.settle(c.init)
		return err
	}
	p.state = running
	c.publish(&wire.TaskExecStarted{ContainerID: c.id, ExecID: p.execID, Pid: uint32(p.pid)})
	c.settle(p)
	return nil
}

// openExec waits for the clients of an exec's streams, and then begins its start: not before, as
// the exit of the init is delayed while an exec is starting.
func (c *container) openExec(ctx context.Context, p *process) error {
	c.mu.Lock()
	err := c.execAllowed()
	if err == nil {
		err = p.startable()
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	// Those of a start that was cut off serve, or are closed when others are open: their readers
	// see no end.
	io, failed := p.io, error(nil)
	if io == nil || !io.Fresh() {
		if io, failed = c.openIO(ctx, p.config); p.io != nil {
			p.io.Close()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err = c.execAllowed(); err == nil {
		err = c.begin(p)
	}
	if err != nil {
		if failed == nil {
			io.Close()
		}
		return err
	}
	p.io = io // nil where they could not be opened
	c.keep()
	return failed
}

func (c *container) runExec(ctx context.Context, p *process) error {
	defer c.service.Reaper.Hold()()
	spec := &engine.Exec{ID: p.execID, Process: p.spec, PidFile: c.pidFile(p.execID), Stdio: p.io.Child()}
	if c.service.Memory != nil {
		spec.Held, spec.Done = p.noteHeld, p.noteDone
	}
	made, err := c.handle.Exec(context.WithoutCancel(ctx), spec)
	if err == nil {
		err = p.adopt(made)
	}
	if err != nil {
		p.io.Close()
		return err
	}
	p.io.Lead()
	return nil
}

// noteHeld notes a process that does not execute its program before this has returned: a shim that
// comes after this one finds it, and starts no other.
func (p *process) noteHeld(made *engine.Process, held engine.Held) error {
	c := p.container
	c.mu.Lock()
	defer c.mu.Unlock()
	c.service.Memory.Holds(uint32(held.Socket))
	p.pid, p.held = made.Pid, held
	p.io.Started(made.Console, c.kept())
	return nil
}

// noteDone notes that it has executed its program, or that there is no process any more.
func (p *process) noteDone(executed bool) {
	c := p.container
	c.mu.Lock()
	defer c.mu.Unlock()
	p.held = engine.Held{}
	if !executed {
		p.pid = 0
	}
	c.keep()
}

// takeHeld takes up a process that was noted and not adopted. One that is no more, and was reaped
// by no shim, has not executed its program.
func (p *process) takeHeld(h *wire.HandoverProcess, t *fds.Table) (err error) {
	if h.HeldSocket != 0 {
		if p.heldFile, err = t.File(h.HeldSocket, "socket of an exec"); err != nil {
			return err
		}
		p.held = engine.Held{Socket: int(h.HeldSocket), Name: h.HeldName}
	}
	if err = p.takeUp(); err == nil {
		return nil
	}
	if p.heldFile != nil {
		p.heldFile.Close()
	}
	p.pid, p.held, p.heldFile = 0, engine.Held{}, nil
	return nil
}

// rejoin goes on with the start of a process where a shim that was killed has left off.
func (c *container) rejoin(ctx context.Context, p *process) error {
	defer c.service.Reaper.Hold()()
	c.mu.Lock()
	held, file := p.held, p.heldFile
	c.mu.Unlock()
	// The engine closes what it is given.
	own, err := fds.Dup(file)
	if err == nil {
		err = c.handle.Rejoin(context.WithoutCancel(ctx), &engine.Exec{ID: p.execID, Process: p.spec}, &engine.Process{Pid: p.pid}, engine.Held{Socket: own, Name: held.Name})
	}
	p.noteRejoined()
	if err != nil {
		p.io.Close()
		return fmt.Errorf("exec %q of container %q: %w", p.execID, c.id, err)
	}
	return nil
}

func (p *process) noteRejoined() {
	c := p.container
	c.mu.Lock()
	defer c.mu.Unlock()
	p.held = engine.Held{}
	c.keep()
	p.heldFile.Close()
	p.heldFile = nil
}

func (c *container) pidFile(execID string) string {
	return filepath.Join(c.bundle, execID+".pid")
}
