package systemd

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/internal/dbus"
)

// Properties gives properties that a unit has for its type, as the bus has them,
// with its ActiveState. Those that this systemd does not know are missing. systemd
// answers for a unit that it does not know, too, with the defaults.
//
// They are asked for one by one, with all questions under way at once: for all of
// them together systemd would look up a hundred others, counters of the kernel
// among them.
func (m *Manager) Properties(ctx context.Context, name string, properties ...string) (map[string]any, error) {
	all := make(map[string]any, len(properties)+1)
	err := m.retry(ctx, func(ctx context.Context, c *connection) error {
		unit := unitPath(name)
		state, err := c.Go(ctx, getCall(unit, busName+".Unit", "ActiveState"))
		if err != nil {
			return err
		}
		calls := make([]*dbus.Pending, len(properties))
		for i, property := range properties {
			if calls[i], err = c.Go(ctx, getCall(unit, typeInterface(name), property)); err != nil {
				return err
			}
		}
		var active string
		if err := answer(ctx, state, &active); err != nil {
			return err
		}
		all["ActiveState"] = active
		for i, property := range properties {
			var v any
			err := answer(ctx, calls[i], &v)
			switch {
			case isNamed(err, "org.freedesktop.DBus.Error.UnknownProperty"):
			case err != nil:
				return err
			default:
				all[property] = v
			}
		}
		return nil
	})
	if err != nil {
		return nil, fail("read the properties of", name, err)
	}
	return all, nil
}

// Delegates reports whether the cgroup is that of a unit that runs and is delegated. An ordinary
// user's manager leaves no mark at the cgroup of one that is. The unit's name is not that of the
// directory: systemd writes _cpu.scope for cpu.scope, and is free to change how.
func (m *Manager) Delegates(ctx context.Context, controlGroup string) (bool, error) {
	name, err := m.unitBy(ctx, "GetUnitByControlGroup", "s", controlGroup)
	if err != nil {
		return false, fail("find the unit of", controlGroup, err)
	}
	properties, err := m.Properties(ctx, name, "Delegate", "ControlGroup")
	if err != nil {
		return false, err
	}
	delegated, _ := properties["Delegate"].(bool)
	// systemd gives the nearest unit above where the cgroup is none.
	return delegated && properties["ActiveState"] == "active" && properties["ControlGroup"] == controlGroup, nil
}

// typeInterface is the interface of a unit's type: org.freedesktop.systemd1.Slice.
func typeInterface(name string) string {
	suffix := name[strings.LastIndexByte(name, '.')+1:]
	if suffix == "" {
		return busName + ".Unit"
	}
	return busName + "." + strings.ToUpper(suffix[:1]) + suffix[1:]
}

// UnitOf names the unit that a process is in.
func (m *Manager) UnitOf(ctx context.Context, pid int) (string, error) {
	name, err := m.unitBy(ctx, "GetUnitByPID", "u", uint32(pid))
	return name, fail("find the unit of a process", "", err)
}

// unitBy names the unit that a method of the manager finds.
func (m *Manager) unitBy(ctx context.Context, method string, signature dbus.Signature, arg any) (name string, err error) {
	err = m.retry(ctx, func(ctx context.Context, c *connection) error {
		answer, err := c.Call(ctx, managerCall(method, signature, arg))
		if err != nil {
			return err
		}
		var path dbus.ObjectPath
		if err := into(answer, &path); err != nil {
			return err
		}
		return c.property(ctx, path, busName+".Unit", "Id", &name)
	})
	return name, err
}

// Activate starts a unit that is there, such as a slice, which needs no file, and
// waits until its job has ended.
func (m *Manager) Activate(ctx context.Context, name string) error {
	err := m.retry(ctx, func(ctx context.Context, c *connection) error {
		w, err := c.watch(ctx, name)
		if err != nil {
			return err
		}
		defer c.unwatch(w)
		return c.job(ctx, w, managerCall("StartUnit", "ss", name, "replace"))
	})
	return fail("start", name, missing(err))
}

// Reload lets systemd read all its files again, as after a drop-in was removed.
func (m *Manager) Reload(ctx context.Context) error {
	err := m.retry(ctx, func(ctx context.Context, c *connection) error {
		_, err := c.Call(ctx, managerCall("Reload", ""))
		return err
	})
	return fail("reload", "", err)
}

// listener is notified of changes.
type listener struct {
	units   map[dbus.ObjectPath]string
	rules   []string // by which the bus sends the signals
	changes chan string
}

// Changes tells of units whose state changes, or that come and go, by their name,
// and with an empty one that systemd has read all its files again. What a property
// of theirs is set to, systemd does not tell. The channel is closed when ctx is
// done or the connection is lost; changes in quick succession may be joined.
func (m *Manager) Changes(ctx context.Context, units ...string) (<-chan string, error) {
	l := &listener{units: map[dbus.ObjectPath]string{}, changes: make(chan string, 16)}
	for _, name := range units {
		l.units[unitPath(name)] = name
	}
	for _, member := range []string{"UnitNew", "UnitRemoved", "Reloading"} {
		l.rules = append(l.rules, "type='signal',interface='"+managerInterface+"',member='"+member+"'")
	}
	for path := range l.units {
		l.rules = append(l.rules, "type='signal',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',path='"+string(path)+"'")
	}
	var on *connection
	err := m.retry(ctx, func(ctx context.Context, c *connection) error {
		on = c
		if c.private {
			return nil
		}
		// Unless a client wants them, systemd does not send its signals to the bus.
		_, err := c.Call(ctx, managerCall("Subscribe", ""))
		if err != nil && !isNamed(err, busName+".AlreadySubscribed") {
			return err
		}
		for _, rule := range l.rules {
			if _, err := c.Call(ctx, busCall("AddMatch", "s", rule)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fail("listen to", strings.Join(units, ", "), err)
	}
	on.mu.Lock()
	defer on.mu.Unlock()
	if on.over {
		return nil, fail("listen to", strings.Join(units, ", "), dbus.ErrClosed)
	}
	on.told = append(on.told, l)
	context.AfterFunc(ctx, func() { on.deafen(l) })
	return l.changes, nil
}

// deafen takes a listener down, with its rules: the bus gives a connection some
// hundreds and no more (dbus-daemon(1), max_match_rules_per_connection).
func (c *connection) deafen(l *listener) {
	c.mu.Lock()
	at := slices.Index(c.told, l)
	if at >= 0 {
		c.told = slices.Delete(c.told, at, at+1)
		close(l.changes)
	}
	c.mu.Unlock()
	if at < 0 || c.private {
		return
	}
	for _, rule := range l.rules {
		c.tell(busCall("RemoveMatch", "s", rule))
	}
}

// tellListeners passes a signal on. It never waits: a listener that is behind looks at
// everything anyway when he comes to it.
func (c *connection) tellListeners(signal *dbus.Signal) {
	iface, member := signal.Interface, signal.Member
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.told {
		name, known := "", false
		switch {
		case iface == managerInterface && member == "Reloading":
			var begins bool
			known = into(signal.Body, &begins) == nil && !begins
		case iface == managerInterface && (member == "UnitNew" || member == "UnitRemoved"):
			var path dbus.ObjectPath
			var id string
			if into(signal.Body, &id, &path) == nil {
				name, known = l.units[path]
			}
		case member == "PropertiesChanged":
			name, known = l.units[signal.Path]
		}
		if known {
			select {
			case l.changes <- name:
			default:
			}
		}
	}
}
