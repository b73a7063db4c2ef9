package systemd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-runtime/berth/internal/dbus"
)

// Start starts a transient unit with all its properties and waits until its job
// has ended.
//
// A unit of the name that is left over from before is cleared away once. Where
// the connection breaks in between, Start looks at what became of the unit
// before it tries again.
func (m *Manager) Start(ctx context.Context, name string, properties []Property) error {
	ctx, cancel := m.deadline(ctx)
	defer cancel()
	err := m.start(ctx, name, properties)
	if err == nil {
		return nil
	}
	err = fail("start", name, err)
	var e *Error
	if errors.As(err, &e) && e.Source == "" {
		e.Source = blame(err, properties)
	}
	return err
}

func (m *Manager) start(ctx context.Context, name string, properties []Property) error {
	p := pause{}
	for cleared, lost := false, false; ; {
		c, err := m.connect(ctx)
		if err != nil {
			return err
		}
		err = c.startJob(ctx, name, properties)
		switch {
		case err == nil:
			return nil
		case isNamed(err, unitExistsName) && !lost && !cleared:
			cleared = true
			if err := c.clear(ctx, name); err != nil {
				return err
			}
		case isNamed(err, unitExistsName) && !lost:
			return c.inTheWay(ctx, name)
		case isLost(err), isNamed(err, unitExistsName):
			// systemd may have heard a call that was lost, or not, or later than the look.
			if isLost(err) {
				lost = true
				c.Close()
			}
			state := m.startedAnyway(ctx, name, properties)
			switch {
			case state == "active":
				return nil
			case state == "failed":
				m.undo(c, name, false)
				return &JobError{Result: state}
			case state == "" && !isLost(err): // another program's
				return c.inTheWay(ctx, name)
			case !p.wait(ctx):
				m.undo(c, name, true)
				return err
			}
		default:
			var job *JobError
			overdue := ctx.Err() != nil
			if overdue || errors.As(err, &job) { // else systemd refused the call, and there is no unit
				m.undo(c, name, overdue)
			}
			return err
		}
	}
}

func (c *connection) startJob(ctx context.Context, name string, properties []Property) error {
	w, err := c.watch(ctx, name)
	if err != nil {
		return err
	}
	defer c.unwatch(w)
	list, err := wire(properties)
	if err != nil {
		return err
	}
	const auxiliary = "a(sa(sv))" // further units, which there are none of
	return c.job(ctx, w, managerCall("StartTransientUnit", "ssa(sv)"+auxiliary, name, "replace", list, []any{}))
}

// job makes a call that begins a job, and waits for its end.
func (c *connection) job(ctx context.Context, w *jobWaiter, call dbus.Call) error {
	answer, err := c.Call(ctx, call)
	if err != nil {
		return err
	}
	if w.rule != nil {
		if _, err := w.rule.Wait(ctx); err != nil {
			return err // the end of the job would not be heard
		}
	}
	var job dbus.ObjectPath
	if err := into(answer, &job); err != nil {
		return err
	}
	return w.wait(ctx, job)
}

// clear makes the name of a unit free that has failed or ended before and that
// systemd still keeps. One that is in use is left alone.
func (c *connection) clear(ctx context.Context, name string) error {
	active, _, _ := c.state(ctx, name)
	switch active {
	case "active", "activating", "deactivating", "reloading", "refreshing", "maintenance":
		return c.inTheWay(ctx, name)
	}
	_, err := c.Call(ctx, managerCall("ResetFailedUnit", "s", name))
	if isNamed(err, noSuchUnitName) {
		return nil
	}
	return err
}

// inTheWay says what the unit is that has our name.
func (c *connection) inTheWay(ctx context.Context, name string) error {
	active, sub, description := c.state(ctx, name)
	e := &Error{Op: "start", Unit: name, Err: ErrUnitExists}
	if active == "" {
		return e
	}
	e.Hint = fmt.Sprintf("%q is %s (%s)", description, active, sub)
	if active == "failed" {
		e.Hint += ", and systemctl reset-failed did not help"
	}
	return e
}

func (c *connection) state(ctx context.Context, name string) (active, sub, description string) {
	const unit = busName + ".Unit"
	path := unitPath(name)
	if c.property(ctx, path, unit, "ActiveState", &active) != nil {
		return "", "", ""
	}
	// These two are for the message only.
	_ = c.property(ctx, path, unit, "SubState", &sub)
	_ = c.property(ctx, path, unit, "Description", &description)
	return active, sub, description
}

// startedAnyway tells the state of the unit that a lost call was to start. It is ours if it has our
// description: before the call the name was free. The state of one that is not ours is empty.
func (m *Manager) startedAnyway(ctx context.Context, name string, properties []Property) (state string) {
	c, err := m.connect(ctx)
	if err != nil {
		return ""
	}
	want := ""
	for _, p := range properties {
		if p.Name == "Description" {
			want, _ = p.Value.(string)
		}
	}
	active, _, description := c.state(ctx, name)
	if description != want {
		return ""
	}
	return active
}

// undo removes what a failed or overdue start has left, so that the name is
// free for the next. It has no error of its own: the start's is the one to tell.
func (m *Manager) undo(c *connection, name string, stop bool) {
	// The deadline of the start may be the very reason, so there is another. The answers
	// are waited for: systemd drops what it has not read when the connection closes.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if stop {
		_, _ = c.Call(ctx, managerCall("StopUnit", "ss", name, "replace"))
	}
	_, _ = c.Call(ctx, managerCall("ResetFailedUnit", "s", name))
}

// ControlGroup is the path of the cgroup of a unit, below the root of the
// hierarchy that systemd knows.
func (m *Manager) ControlGroup(ctx context.Context, name string) (string, error) {
	path, err := m.controlGroup(ctx, name)
	return path, fail("find the cgroup of", name, err)
}

func (m *Manager) controlGroup(ctx context.Context, name string) (string, error) {
	var path string
	err := m.retry(ctx, func(ctx context.Context, c *connection) error {
		return c.property(ctx, unitPath(name), typeInterface(name), "ControlGroup", &path)
	})
	if err == nil && path == "" {
		// systemd answers for units that it does not know, with defaults.
		return "", ErrNoUnit
	}
	return path, err
}
