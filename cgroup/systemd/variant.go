package systemd

import (
	"fmt"

	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/cgroup/systemd/gvariant"
	"github.com/berth-runtime/berth/internal/dbus"
)

// variant makes the value of a property one for the bus.
func variant(v any) (dbus.Variant, error) {
	of := func(s dbus.Signature) (dbus.Variant, error) { return dbus.Variant{Type: s, Value: v}, nil }
	switch v := v.(type) {
	case dbus.Variant:
		return v, nil
	case gvariant.Value:
		return dbus.Variant{Type: dbus.Signature(v.Type), Value: busValue(v)}, nil
	case []ledger.DeviceValue:
		return dbus.Variant{Type: "a(st)", Value: each(v, func(d ledger.DeviceValue) []any { return []any{d.Path, d.Value} })}, nil
	case []device.Allowed:
		return dbus.Variant{Type: "a(ss)", Value: each(v, func(d device.Allowed) []any { return []any{d.Path, d.Access} })}, nil
	case bool:
		return of("b")
	case string:
		return of("s")
	case int32:
		return of("i")
	case uint32:
		return of("u")
	case int64:
		return of("x")
	case uint64:
		return of("t")
	case []string:
		return of("as")
	case []byte:
		return of("ay")
	case []uint32:
		return of("au")
	}
	return dbus.Variant{}, fmt.Errorf("no property has a value of type %T", v)
}

func each[T, R any](list []T, value func(T) R) []any {
	values := make([]any, len(list))
	for i, v := range list {
		values[i] = value(v)
	}
	return values
}

// busValue makes a value of an annotation one for the bus. unit.Annotations has
// let through only what D-Bus has.
func busValue(v gvariant.Value) any {
	switch v.Type[0] {
	case 'b':
		return v.Bool
	case 'y':
		return byte(v.Uint)
	case 'q':
		return uint16(v.Uint)
	case 'u':
		return uint32(v.Uint)
	case 't':
		return v.Uint
	case 'n':
		return int16(v.Int)
	case 'i':
		return int32(v.Int)
	case 'x':
		return v.Int
	case 'd':
		return v.Double
	case 'o':
		return dbus.ObjectPath(v.Text)
	case 'g':
		return dbus.Signature(v.Text)
	case 'v':
		inner := v.Members[0]
		return dbus.Variant{Type: dbus.Signature(inner.Type), Value: busValue(inner)}
	case '(', '{', 'a':
		return each(v.Members, func(m gvariant.Value) any { return busValue(m) })
	}
	return v.Text
}
