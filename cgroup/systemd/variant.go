package systemd

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup/systemd/gvariant"
	"github.com/godbus/dbus/v5"
)

// variant makes a value of an annotation one for the bus. unit.Annotations has
// let through only what D-Bus has.
func variant(v gvariant.Value) dbus.Variant { return dbus.MakeVariant(goValue(v).Interface()) }

func goValue(v gvariant.Value) reflect.Value {
	t, _ := goType(v.Type)
	out := reflect.New(t).Elem()
	switch v.Type[0] {
	case 'b':
		out.SetBool(v.Bool)
	case 'y', 'q', 'u', 't':
		out.SetUint(v.Uint)
	case 'n', 'i', 'x':
		out.SetInt(v.Int)
	case 'd':
		out.SetFloat(v.Double)
	case 's', 'o':
		out.SetString(v.Text)
	case 'g':
		s, err := dbus.ParseSignature(v.Text)
		if err == nil {
			out.Set(reflect.ValueOf(s))
		}
	case 'v':
		out.Set(reflect.ValueOf(variant(v.Members[0])))
	case '(':
		for i, m := range v.Members {
			out.Field(i).Set(goValue(m))
		}
	case 'a':
		if t.Kind() == reflect.Map {
			out.Set(reflect.MakeMapWithSize(t, len(v.Members)))
			for _, m := range v.Members {
				out.SetMapIndex(goValue(m.Members[0]), goValue(m.Members[1]))
			}
			break
		}
		out.Set(reflect.MakeSlice(t, len(v.Members), len(v.Members)))
		for i, m := range v.Members {
			out.Index(i).Set(goValue(m))
		}
	}
	return out
}

// goType gives the Go type that godbus sends with the first complete type of a
// signature, and what comes after it.
func goType(signature string) (t reflect.Type, rest string) {
	rest = signature[1:]
	switch signature[0] {
	case 'b':
		return reflect.TypeFor[bool](), rest
	case 'y':
		return reflect.TypeFor[byte](), rest
	case 'n':
		return reflect.TypeFor[int16](), rest
	case 'q':
		return reflect.TypeFor[uint16](), rest
	case 'i':
		return reflect.TypeFor[int32](), rest
	case 'u':
		return reflect.TypeFor[uint32](), rest
	case 'x':
		return reflect.TypeFor[int64](), rest
	case 't':
		return reflect.TypeFor[uint64](), rest
	case 'd':
		return reflect.TypeFor[float64](), rest
	case 's':
		return reflect.TypeFor[string](), rest
	case 'o':
		return reflect.TypeFor[dbus.ObjectPath](), rest
	case 'g':
		return reflect.TypeFor[dbus.Signature](), rest
	case 'v':
		return reflect.TypeFor[dbus.Variant](), rest
	case 'a':
		if strings.HasPrefix(rest, "{") {
			key, rest := goType(rest[1:])
			value, rest := goType(rest)
			return reflect.MapOf(key, value), rest[1:]
		}
		elem, rest := goType(rest)
		return reflect.SliceOf(elem), rest
	case '(':
		var fields []reflect.StructField
		for rest[0] != ')' {
			var field reflect.Type
			field, rest = goType(rest)
			fields = append(fields, reflect.StructField{Name: "F" + strconv.Itoa(len(fields)), Type: field})
		}
		return reflect.StructOf(fields), rest[1:]
	}
	panic("systemd: no Go type for signature " + strconv.Quote(signature))
}
