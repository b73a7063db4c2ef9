package enforce

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/enforce/record"
	"github.com/berth-runtime/berth/node/machine"
	"github.com/berth-runtime/berth/node/plan"
)

// Engine changes a machine.
type Engine struct {
	Machine *machine.Machine
	Record  *record.Record
	// Say is told of each step that is done, if it is set.
	Say func(string)
	// Tick is called now and then while something is waited for, if it is set.
	Tick func()

	// at is called around each effect; tests stop there.
	at func(point string)
}

// Error is a step that failed.
type Error struct {
	Step plan.Step
	Err  error
	Hint string
}

func (e *Error) Error() string {
	s := e.Step.String() + ": " + e.Step.Cause + ": " + e.Err.Error()
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

func (e *Engine) point(name string) {
	if e.at != nil {
		e.at(name)
	}
}

func (e *Engine) say(format string, args ...any) {
	if e.Say != nil {
		e.Say(fmt.Sprintf(format, args...))
	}
}

// Apply does what a plan has still to do. What an earlier plan changed and this
// one does not ask for is given back first. It ends at the first step that fails;
// what was done until then stays on record, for the next Apply or Undo. A limit
// of memory that can't be lowered does not keep the others from being set. Steps
// whose ids are in not are left as they are.
func (e *Engine) Apply(ctx context.Context, p *plan.Plan, not ...string) error {
	if len(p.Problems) > 0 {
		return errors.Join(p.Problems...)
	}
	if err := e.undo(ctx, func(c *record.Change) bool { return c.Passing || !asked(p, c) }); err != nil {
		return err
	}
	if err := e.hold(p); err != nil {
		return err
	}
	var notLowered error
	for _, s := range p.Changes() {
		if slices.Contains(not, s.ID()) {
			continue
		}
		err := e.do(ctx, p, s)
		var stuck *StuckError
		switch {
		case errors.As(err, &stuck):
			notLowered = errors.Join(notLowered, &Error{Step: s, Err: err})
		case err != nil:
			return &Error{Step: s, Err: err}
		default:
			e.say("%s (%s)", s.String(), s.Cause)
		}
	}
	return notLowered
}

// hold puts on record what is as planned before anything was done, so that Undo gives back
// this value if another program changes it later, and not the changed one.
func (e *Engine) hold(p *plan.Plan) error {
	var held []record.Change
	for _, s := range p.Steps {
		if s.CheckOnly || s.Kind == plan.Move || !s.Done() {
			continue
		}
		c := changeOf(s)
		switch s.Kind {
		case plan.SetFile:
			c.Before = s.FileNow
		case plan.SetProperty:
			var err error
			c.Persistent = p.Config.Properties == config.Persistent
			if c.DropIn, err = e.dropIn(s.Target, s.Name, c.Persistent); err != nil {
				return err
			}
		case plan.SetParent:
			c.Persistent = true
		case plan.SetScore:
			c.PID, c.Start = s.Process.PID, s.Process.Start
		}
		held = append(held, c)
	}
	return e.Record.Hold(held)
}

func changeOf(s plan.Step) record.Change {
	return record.Change{Kind: s.Kind, Target: s.Target, Name: s.Name, Group: s.Group, Before: s.Now, Wrote: s.Value}
}

// asked reports whether the plan still wants what was changed.
func asked(p *plan.Plan, c *record.Change) bool {
	return slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return !s.CheckOnly && s.ID() == c.ID() })
}

func (e *Engine) do(ctx context.Context, p *plan.Plan, s plan.Step) error {
	switch s.Kind {
	case plan.StartSlice:
		return e.startSlice(ctx, s)
	case plan.SetProperty:
		return e.setProperty(ctx, p, s)
	case plan.MakeGroup:
		return e.makeGroup(s)
	case plan.SetFile:
		return e.setFile(ctx, p, s)
	case plan.Move:
		return e.move(s)
	case plan.SetParameter:
		return e.setParameter(s)
	case plan.SetScore:
		return e.setScore(s)
	case plan.SetParent:
		return e.setParent(s)
	}
	return fmt.Errorf("no such kind of step: %q", s.Kind)
}

// intend puts a step on record.
func (e *Engine) intend(s plan.Step, more func(*record.Change)) error {
	c := changeOf(s)
	if more != nil {
		more(&c)
	}
	e.point("before intent " + s.ID())
	err := e.Record.Intend(c)
	e.point("before " + s.ID())
	return err
}

// Undo gives the node back as it was. What can't be undone stays on record, and
// does not keep the rest from it.
func (e *Engine) Undo(ctx context.Context) error {
	return e.undo(ctx, func(*record.Change) bool { return true })
}

func (e *Engine) undo(ctx context.Context, which func(*record.Change) bool) error {
	var failed error
	var dropIns []record.Change
	changes := slices.Clone(e.Record.Changes)
	for _, c := range slices.Backward(changes) {
		if !which(&c) {
			continue
		}
		if c.Held {
			if err := e.Record.Drop(c.ID()); err != nil {
				return err
			}
			continue
		}
		err := e.revert(ctx, &c)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("undo %s: %w", c.ID(), err))
			continue
		}
		if c.DropIn != nil {
			// On record until systemd has read its files again.
			dropIns = append(dropIns, c)
			continue
		}
		if err := e.Record.Drop(c.ID()); err != nil {
			return err
		}
		e.say("undid %s", c.ID())
	}
	if len(dropIns) > 0 {
		e.point("before reload")
		if err := e.Machine.Units.Reload(ctx); err != nil {
			return errors.Join(failed, err)
		}
		for _, c := range dropIns {
			if err := e.Record.Drop(c.ID()); err != nil {
				return err
			}
			e.say("undid %s", c.ID())
		}
	}
	return failed
}

func (e *Engine) revert(ctx context.Context, c *record.Change) error {
	e.point("before undoing " + c.ID())
	switch c.Kind {
	case plan.StartSlice:
		return e.stopSlice(ctx, c)
	case plan.SetProperty:
		return e.revertProperty(ctx, c)
	case plan.MakeGroup:
		return e.removeGroup(c)
	case plan.SetFile:
		return e.revertFile(c)
	case plan.Move:
		return e.moveBack(c)
	case plan.SetParameter:
		return e.revertParameter(c)
	case plan.SetScore:
		return e.revertScore(c)
	case plan.SetParent:
		return e.revertParent(c)
	}
	return fmt.Errorf("no such kind of change: %q", c.Kind)
}

// lasting is how long a property that was set is there.
func lasting(persistent bool) config.Lasting {
	if persistent {
		return config.Persistent
	}
	return config.Runtime
}
