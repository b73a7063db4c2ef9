package systemd

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-runtime/berth/internal/dbus"
)

// managerCall is a call of systemd's manager.
func managerCall(member string, s dbus.Signature, args ...any) dbus.Call {
	return dbus.Call{Destination: busName, Path: managerPath, Interface: managerInterface, Member: member, Signature: s, Args: args}
}

// busCall is a call of the bus itself.
func busCall(member string, s dbus.Signature, args ...any) dbus.Call {
	const bus = "org.freedesktop.DBus"
	return dbus.Call{Destination: bus, Path: "/org/freedesktop/DBus", Interface: bus, Member: member, Signature: s, Args: args}
}

// getCall asks for a property of an object.
func getCall(path dbus.ObjectPath, iface, name string) dbus.Call {
	return dbus.Call{Destination: busName, Path: path, Interface: "org.freedesktop.DBus.Properties", Member: "Get", Signature: "ss", Args: []any{iface, name}}
}

// into takes values of an answer, all of them, as the types that they are to have.
func into(values []any, to ...any) error {
	if len(values) != len(to) {
		return fmt.Errorf("the answer has %d values, not %d", len(values), len(to))
	}
	for i, v := range values {
		ok := false
		switch to := to[i].(type) {
		case *string:
			*to, ok = v.(string)
		case *uint32:
			*to, ok = v.(uint32)
		case *dbus.ObjectPath:
			*to, ok = v.(dbus.ObjectPath)
		case *bool:
			*to, ok = v.(bool)
		case *dbus.Variant:
			*to, ok = v.(dbus.Variant)
		case *any:
			*to, ok = v, true
		}
		if !ok {
			return fmt.Errorf("value %d of the answer is %v", i+1, v)
		}
	}
	return nil
}

// property reads a property of an object.
func (c *connection) property(ctx context.Context, path dbus.ObjectPath, iface, name string, to any) error {
	answer, err := c.Call(ctx, getCall(path, iface, name))
	if err != nil {
		return err
	}
	return variantInto(answer, to)
}

func variantInto(answer []any, to any) error {
	var v dbus.Variant
	if err := into(answer, &v); err != nil {
		return err
	}
	return into([]any{v.Value}, to)
}

// tell makes a call without waiting for its answer, also where the time of the
// caller is over: sending a message does not take long, or never ends.
func (c *connection) tell(call dbus.Call) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Tell(ctx, call)
}
