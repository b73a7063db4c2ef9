package systemd

import (
	"context"

	"github.com/berth-runtime/berth/internal/dbus"
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
		version, err := c.Go(ctx, getCall(managerPath, managerInterface, "Version"))
		if err != nil {
			return err
		}
		group, err := c.Go(ctx, getCall(managerPath, managerInterface, "ControlGroup"))
		if err != nil {
			return err
		}
		var text string
		if err := answer(ctx, version, &text); err != nil {
			return err
		}
		if err := answer(ctx, group, &d.ControlGroup); err != nil {
			return err
		}
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
func answer(ctx context.Context, asked *dbus.Pending, to any) error {
	values, err := asked.Wait(ctx)
	if err != nil {
		return err
	}
	return variantInto(values, to)
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
