package systemd

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-runtime/berth/internal/dbus"
)

// Machine is a container as systemd-machined knows it, for machinectl, for
// journalctl -M and for the names in ps.
type Machine struct {
	// Name is a host name that no other machine has.
	Name string
	// ID is the machine id of what runs in it, if it is known.
	ID [16]byte
	// Leader is the pid of its first process, which is in a unit already.
	Leader int
	// Root is its root directory on the host, if there is one.
	Root string
}

// Register makes a running container known to systemd-machined, which forgets
// it by itself when its leader ends. machined is on the system bus only.
func (m *Manager) Register(ctx context.Context, machine Machine) error {
	op := "register machine " + machine.Name + " with systemd-machined"
	if err := checkMachine(machine.Name); err != nil {
		return &Error{Op: op, Err: err}
	}
	ctx, cancel := m.deadline(ctx)
	defer cancel()
	c, err := m.dialBus(ctx)
	if err != nil {
		return fail(op, "", err)
	}
	defer c.Close()
	id := machine.ID[:]
	if machine.ID == [16]byte{} {
		id = []byte{}
	}
	_, err = c.Call(ctx, dbus.Call{
		Destination: "org.freedesktop.machine1", Path: "/org/freedesktop/machine1",
		Interface: "org.freedesktop.machine1.Manager", Member: "RegisterMachine", Signature: "sayssus",
		Args: []any{machine.Name, id, "berth", "container", uint32(machine.Leader), machine.Root},
	})
	if isNamed(err, "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner") {
		return &Error{Op: op, Err: plain(err), Hint: "systemd-machined is not installed, see the package systemd-container"}
	}
	return fail(op, "", err)
}

// dialBus connects to a bus, where dial would take systemd's own socket.
func (m *Manager) dialBus(ctx context.Context) (*connection, error) {
	errs := []error{errors.New("no bus answers")}
	for _, s := range m.sockets() {
		if s.private {
			continue
		}
		c, err := m.dialSocket(ctx, s, false)
		if err == nil {
			return c, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", s.path, err))
	}
	return nil, errors.Join(errs...)
}

// checkMachine has machined's rules for names (hostname_is_valid).
func checkMachine(name string) error {
	if name == "" || len(name) > 64 {
		return fmt.Errorf("%q is not a host name: one has 1 to 64 characters", name)
	}
	previous := byte('.')
	for i := range len(name) {
		c := name[i]
		last := i == len(name)-1
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
		case c == '-' && previous != '.' && !last:
		case c == '.' && previous != '.' && previous != '-' && !last:
		default:
			return fmt.Errorf("%q is not a host name: %q cannot be in its place", name, name[i:i+1])
		}
		previous = c
	}
	return nil
}
