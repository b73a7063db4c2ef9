package systemd

import (
	"context"
	"errors"
	"slices"

	"github.com/berth-runtime/berth/internal/dbus"
)

// Set changes properties of a running unit, until the next start of the machine. When
// it returns, systemd has written them to the unit's cgroup.
//
// systemd does not only write what changed: on cgroup v1 it writes a unit's
// device list again, denying everything first, when any of its device properties
// is in the call. Leave those out where the devices stay as they are.
func (m *Manager) Set(ctx context.Context, name string, properties []Property) error {
	return m.set(ctx, name, true, properties)
}

// Keep is Set for good: systemd writes a drop-in for each property below
// /etc/systemd/system.control, where Set writes it below /run.
func (m *Manager) Keep(ctx context.Context, name string, properties []Property) error {
	return m.set(ctx, name, false, properties)
}

func (m *Manager) set(ctx context.Context, name string, runtime bool, properties []Property) error {
	if len(properties) == 0 {
		return nil
	}
	err := m.retry(ctx, func(ctx context.Context, c *connection) error {
		list, err := wire(properties)
		if err != nil {
			return err
		}
		change, err := c.Go(ctx, managerCall("SetUnitProperties", "sba(sv)", name, runtime, list))
		if err != nil {
			return err
		}
		// It writes them after it has answered, and before it hears the next question.
		next, err := c.Go(ctx, getCall(unitPath(name), busName+".Unit", "ActiveState"))
		if err != nil {
			return err
		}
		_, err = change.Wait(ctx)
		if _, last := next.Wait(ctx); err == nil {
			err = last
		}
		return err
	})
	if err = fail("change", name, missing(err)); err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) && e.Source == "" {
		e.Source = blame(err, properties)
	}
	return err
}

// Stop stops a unit, waits until it has, and makes systemd forget that it may
// have failed. A unit that is not there is stopped already.
func (m *Manager) Stop(ctx context.Context, name string) error {
	err := m.retry(ctx, func(ctx context.Context, c *connection) error {
		w, err := c.watch(ctx, name)
		if err != nil {
			return err
		}
		defer c.unwatch(w)
		if err := c.job(ctx, w, managerCall("StopUnit", "ss", name, "replace")); err != nil {
			return err
		}
		// Its processes may have been killed, which a scope remembers. systemd drops what it
		// has not read when a connection closes, so the answer is waited for.
		_, err = c.Call(ctx, managerCall("ResetFailedUnit", "s", name))
		return err
	})
	if isNamed(err, noSuchUnitName) {
		return nil
	}
	return fail("stop", name, err)
}

// Freeze stops the processes of a unit, and comes back when they stand still.
// systemd knows of it then, and will not take the unit for one that hangs. The
// error is ErrNoFreezer before systemd 246, and on cgroup v1.
func (m *Manager) Freeze(ctx context.Context, name string) error {
	return m.freezer(ctx, "freeze", "FreezeUnit", name)
}

// Thaw undoes Freeze.
func (m *Manager) Thaw(ctx context.Context, name string) error {
	return m.freezer(ctx, "thaw", "ThawUnit", name)
}

func (m *Manager) freezer(ctx context.Context, op, method, name string) error {
	err := m.retry(ctx, func(ctx context.Context, c *connection) error {
		_, err := c.Call(ctx, managerCall(method, "s", name))
		return err
	})
	if isNamed(err, "org.freedesktop.DBus.Error.UnknownMethod", "org.freedesktop.DBus.Error.NotSupported", "System.Error.EOPNOTSUPP") {
		err = ErrNoFreezer
	}
	return fail(op, name, missing(err))
}

// missing turns systemd's own error for an unknown unit into ours.
func missing(err error) error {
	if isNamed(err, noSuchUnitName) {
		return ErrNoUnit
	}
	return err
}

// Present reads what the named properties of a unit are now, in the form in which
// Set brings them back. A name that is there twice is read once.
func (m *Manager) Present(ctx context.Context, name string, of []Property) ([]Property, error) {
	var present []Property
	err := m.retry(ctx, func(ctx context.Context, c *connection) error {
		present = nil
		asked := make([]*dbus.Pending, len(of))
		for i, p := range of {
			if slices.ContainsFunc(of[:i], func(q Property) bool { return q.Name == p.Name }) {
				continue
			}
			var err error
			if asked[i], err = c.Go(ctx, getCall(unitPath(name), typeInterface(name), p.Name)); err != nil {
				return err
			}
		}
		for i, p := range of {
			if asked[i] == nil {
				continue
			}
			answer, err := asked[i].Wait(ctx)
			var v dbus.Variant
			if err == nil {
				err = into(answer, &v)
			}
			if err != nil {
				return err
			}
			present = append(present, restoring(p, v)...)
		}
		return nil
	})
	return present, fail("read the properties of", name, missing(err))
}

// restoring gives what brings a property back to a value that was read. A list is
// added to what there is; an empty one clears it.
func restoring(p Property, v dbus.Variant) []Property {
	now := Property{p.Name, v, p.Source}
	switch v.Type {
	case "a(st)", "a(ss)": // limits of devices, DeviceAllow
		cleared := Property{p.Name, dbus.Variant{Type: v.Type, Value: []any{}}, p.Source}
		if list, ok := v.Value.([]any); ok && len(list) == 0 {
			return []Property{cleared}
		}
		return []Property{cleared, now}
	}
	return []Property{now}
}
