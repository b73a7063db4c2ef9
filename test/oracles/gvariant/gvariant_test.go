// Package gvariant holds our reader of GVariant text against the usual D-Bus library.
package gvariant

import (
	"reflect"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"

	"github.com/berth-runtime/berth/cgroup/systemd/gvariant"
)

// inside is a variant, with the type that it has.
type inside struct {
	signature string
	value     any
}

// ourValue makes plain Go of a value, in which a dict is a map.
func ourValue(v gvariant.Value) any {
	switch kind := v.Type[0]; {
	case kind == 'b':
		return v.Bool
	case strings.IndexByte("nixh", kind) >= 0:
		return v.Int
	case strings.IndexByte("yqut", kind) >= 0:
		return v.Uint
	case kind == 'd':
		return v.Double
	case strings.IndexByte("sog", kind) >= 0:
		return v.Text
	case kind == 'v':
		return inside{v.Members[0].Type, ourValue(v.Members[0])}
	case strings.HasPrefix(v.Type, "a{"):
		m := map[any]any{}
		for _, e := range v.Members {
			m[ourValue(e.Members[0])] = ourValue(e.Members[1])
		}
		return m
	}
	list := []any{}
	for _, m := range v.Members {
		list = append(list, ourValue(m))
	}
	return list
}

// theirValue makes the same of the library's.
func theirValue(v any) any {
	switch v := v.(type) {
	case dbus.Variant:
		return inside{v.Signature().String(), theirValue(v.Value())}
	case dbus.Signature:
		return v.String()
	}
	r := reflect.ValueOf(v)
	switch {
	case r.Kind() == reflect.Bool:
		return r.Bool()
	case r.CanInt():
		return r.Int()
	case r.CanUint():
		return r.Uint()
	case r.CanFloat():
		return r.Float()
	case r.Kind() == reflect.String:
		return r.String()
	case r.Kind() == reflect.Map:
		m := map[any]any{}
		for _, k := range r.MapKeys() {
			m[theirValue(k.Interface())] = theirValue(r.MapIndex(k).Interface())
		}
		return m
	}
	list := []any{}
	for i := range r.Len() {
		list = append(list, theirValue(r.Index(i).Interface()))
	}
	return list
}

// What both take is the same value of the same type to both. It is a table and no fuzz test, which
// finds nothing but what the library takes for something else than GLib does: \v for v, \101 for
// 101, +010 for 10, 000.00008 for 0. Tuples and maybes it has not.
func TestAgainstTheUsualLibrary(t *testing.T) {
	for _, text := range []string{
		"'a'", `"it's"`, `'it\'s "\\"'`, `'\u00e9\n\t\U0001f600'`, "'é'", "true", "false", "5", "-5", "0x1F", "010", "-2147483648", "uint64 5", "int64 -6", "byte 0x10", "int16 -2", "uint16 3", "uint32 5",
		"@t 18446744073709551615", "@y 7", "1.5", "-1e3", "[1, 2]", "[1, 2.5]", "[@x 1, 2]", "@as []", "@aas [[], ['a']]", "[[1], [2, 3]]", "['a', 'b']", "[true]",
		"{'k': <true>}", "{'k': <@as []>, 'l': <uint32 1>}", "{1: 'a', 2: 'b'}", "@a{sv} {}", "<5>", "<<'x'>>", "[<1>, <'a'>]", "b'bytes'", `b'x\n'`, `b""`, "[b'a', b'b']",
		"objectpath '/a'", "signature 'ai'", "[objectpath '/', '/a/b']", " [ 1 ,2 ] ",
	} {
		ours, err := gvariant.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		theirs, err := dbus.ParseVariant(text, dbus.Signature{})
		if err != nil {
			t.Errorf("%s: the library: %v", text, err)
			continue
		}
		got, want := inside{ours.Type, ourValue(ours)}, theirValue(theirs)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %#v, and to the library %#v", text, got, want)
		}
	}
}
