package systemd

import (
	"context"

	"github.com/godbus/dbus/v5"
)

// Description is what a systemd says of itself.
type Description struct {
	Version int
	// ControlGroup is the manager's own cgroup, below which those of its units
	// are: / for the system's, unless it is in a container itself.
	ControlGroup string
}

// Describe asks a systemd what it is, with both questions under way at once.
func (m *Manager) Describe(ctx context.Context) (Description, error) {
	var d Description
	err := m.retry(ctx, func(ctx context.Context, c *connection) error {
		const get = "org.freedesktop.DBus.Properties.Get"
		version := c.manager().GoWithContext(ctx, get, 0, nil, managerInterface, "Version")
		group := c.manager().GoWithContext(ctx, get, 0, nil, managerInterface, "ControlGroup")
		var text string
		if err := answer(ctx, version, &text); err != nil {
			return err
		}
		if err := answer(ctx, group, &d.ControlGroup); err != nil {
			return err
		}
		var err error
		d.Version, err = parseVersion(text)
		return err
	})
	if err != nil {
		return d, fail("ask systemd what it is", "", err)
	}
	if d.ControlGroup == "" {
		d.ControlGroup = "/"
	}
	m.mu.Lock()
	m.version = d.Version
	m.mu.Unlock()
	return d, nil
}

// answer waits for the answer to a question for a property.
func answer(ctx context.Context, call *dbus.Call, to any) error {
	select {
	case <-call.Done:
	case <-ctx.Done():
		return ctx.Err()
	}
	var v dbus.Variant
	if err := call.Store(&v); err != nil {
		return err
	}
	return v.Store(to)
}

// Look tells the state of a unit and its description; the state is empty, or
// inactive, where systemd does not know the unit.
func (m *Manager) Look(ctx context.Context, name string) (active, description string, err error) {
	err = m.retry(ctx, func(ctx context.Context, c *connection) error {
		const unit = busName + ".Unit"
		if err := c.property(ctx, unitPath(name), unit, "ActiveState", &active); err != nil {
			return err
		}
		return c.property(ctx, unitPath(name), unit, "Description", &description)
	})
	return active, description, fail("look at", name, err)
}
