package enforce

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/node/enforce/record"
	"github.com/berth-runtime/berth/node/plan"
	"golang.org/x/sys/unix"
)

// makeGroup makes a cgroup in all hierarchies. The directories that are missing
// go on record before, so that they are known as ours whenever we are killed.
func (e *Engine) makeGroup(s plan.Step) error {
	if err := e.intend(s, func(c *record.Change) { c.Made = e.missing(s.Target) }); err != nil {
		return err
	}
	g, err := e.Machine.Cgroups.Create(s.Target)
	if err != nil {
		return err
	}
	return g.Close()
}

// missing lists the directories that a cgroup at a path lacks.
func (e *Engine) missing(at string) []string {
	var list []string
	for _, h := range e.Machine.Cgroups.Hierarchies() {
		for p := at; p != "/"; p = path.Dir(p) {
			dir := e.Machine.Root + h.Mountpoint + p
			if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
				break
			}
			list = append(list, dir)
		}
	}
	return list
}

// removeGroup removes a cgroup that was made. Processes in it must not be killed.
func (e *Engine) removeGroup(c *record.Change) error {
	if c.Before != "" {
		return nil
	}
	return e.undoIn(c.Target, cgroup.Made(c.Made), func(g *cgroup.Group) error {
		pids, err := g.AllProcs()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if len(pids) > 0 {
			return fmt.Errorf("%w: process %d and %d others are in it; end them, then undo again", cgroup.ErrBusy, pids[0], len(pids)-1)
		}
		return g.Destroy()
	})
}

// undoIn does something with a cgroup that was changed. One that is gone since took
// the change with it.
func (e *Engine) undoIn(path string, by cgroup.Option, do func(*cgroup.Group) error) error {
	g, err := e.Machine.Cgroups.Open(path, by)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer g.Close()
	return do(g)
}

// open gives a cgroup that the configuration names, which is the leave to change it.
func (e *Engine) open(path string) (*cgroup.Group, error) {
	return e.Machine.Cgroups.Open(path, cgroup.Force())
}

func (e *Engine) setFile(ctx context.Context, p *plan.Plan, s plan.Step) error {
	g, err := e.open(s.Group)
	if err != nil {
		return err
	}
	defer g.Close()
	before, err := g.ReadFile(s.Name) // the group may have been made after the plan
	if err != nil {
		before = s.Now
	}
	if err := e.intend(s, func(c *record.Change) { c.Before = before }); err != nil {
		return err
	}
	write := func() error {
		differences, err := g.Apply([]ledger.Write{*s.Write})
		if err == nil && len(differences) > 0 {
			err = errors.New(differences[0].String())
		}
		return err
	}
	if s.Memory {
		return e.lower(ctx, p, s, write)
	}
	return write()
}

func (e *Engine) revertFile(c *record.Change) error {
	made := e.Record.Find(string(plan.MakeGroup) + " " + c.Target)
	if made != nil && made.Before == "" && !c.Passing || c.Before == "" {
		return nil // it goes with its cgroup
	}
	return e.undoIn(c.Group, cgroup.Force(), func(g *cgroup.Group) error {
		if err := e.fits(c); err != nil {
			return err
		}
		value := c.Before
		// Version 1 shows no limit of memory as a number that it does not take.
		if w := (ledger.Write{File: c.Name, Value: "-1"}); c.Name == "memory.limit_in_bytes" {
			if none, _ := w.Took(value); none {
				value = "-1"
			}
		}
		return g.WriteFile(c.Name, value)
	})
}

// move puts processes into a cgroup: one, or all that are in no cgroup. Forks come
// in between, so the list is read until it is empty.
func (e *Engine) move(s plan.Step) error {
	if err := e.intend(s, func(c *record.Change) {
		if s.Process != nil {
			c.PID, c.Start, c.Before = s.Process.PID, s.Process.Start, s.Process.Cgroup
		}
	}); err != nil {
		return err
	}
	g, err := e.open(s.Group)
	if err != nil {
		return err
	}
	defer g.Close()
	if s.Process != nil {
		if !e.Machine.Alive(s.Process.PID, s.Process.Start) {
			return nil
		}
		return gone(g.Join(s.Process.PID))
	}
	const rounds = 100
	stay := map[int]bool{}
	for range rounds {
		moved := false
		for _, pid := range e.Machine.Loose() {
			if stay[pid] {
				continue
			}
			err := gone(g.Join(pid))
			if errors.Is(err, unix.EINVAL) {
				stay[pid] = true // bound to a processor: the kernel's, whatever its flags say
				continue
			}
			if err != nil {
				return fmt.Errorf("process %d: %w", pid, err)
			}
			moved = true
		}
		if !moved {
			return nil
		}
	}
	return fmt.Errorf("%w: new processes keep coming in the root", cgroup.ErrBusy)
}

// gone forgives that a process has ended.
func gone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// moveBack puts processes back to where they were: one, or all into the root.
func (e *Engine) moveBack(c *record.Change) error {
	return e.undoIn(c.Group, cgroup.Force(), func(g *cgroup.Group) error { return e.moveOut(g, c) })
}

func (e *Engine) moveOut(g *cgroup.Group, c *record.Change) error {
	to := "/"
	if c.PID != 0 && c.Before != "" {
		to = c.Before
	}
	home, err := e.open(to)
	if err != nil {
		return err
	}
	defer home.Close()
	for {
		pids, err := g.Procs()
		if err != nil {
			return err
		}
		moved := false
		for _, pid := range pids {
			if c.PID != 0 && (pid != c.PID || !e.Machine.Alive(c.PID, c.Start)) {
				continue
			}
			if err := gone(home.Join(pid)); err != nil {
				return fmt.Errorf("process %d: %w", pid, err)
			}
			moved = true
		}
		if !moved {
			return nil
		}
	}
}
