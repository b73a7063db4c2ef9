package main

import (
	"fmt"
	"reflect"

	"github.com/opencontainers/runtime-spec/specs-go"
)

func encoders() ([]byte, error) {
	p := new(printer)
	p.printf(header, specs.Version)
	p.printf("import (\n\t\"maps\"\n\t\"slices\"\n\n\t\"github.com/opencontainers/runtime-spec/specs-go\"\n\n" +
		"\t\"github.com/berth-runtime/berth/internal/json\"\n)\n")
	for _, t := range structs(reflect.TypeFor[specs.Spec]()) {
		p.printf("\nfunc encode%s(w *json.Writer, v *%s) {\nw.Object()\n", t.Name(), goName(t))
		for _, f := range fieldsOf(t) {
			p.member("v."+f.access, f)
		}
		p.printf("w.End()\n}\n")
	}
	return p.source()
}

func (p *printer) member(value string, f field) {
	if f.omit {
		if condition := present(value, f.typ); condition != "" {
			p.printf("if %s {\n", condition)
			defer p.printf("}\n")
		}
	}
	p.printf("w.Key(%q)\n", f.key)
	p.encode(value, f.typ)
}

// present is the condition under which omitempty keeps a value. A structure is
// never empty to encoding/json.
func present(value string, t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return value + ` != ""`
	case reflect.Bool:
		return value
	case reflect.Pointer:
		return value + " != nil"
	case reflect.Slice, reflect.Map:
		return "len(" + value + ") > 0"
	case reflect.Struct:
		return ""
	}
	return value + " != 0"
}

func (p *printer) encode(value string, t reflect.Type) {
	switch t.Kind() {
	case reflect.String:
		p.printf("w.String(%s)\n", converted(value, t, "string"))
	case reflect.Bool:
		p.printf("w.Bool(%s)\n", value)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.printf("w.Int(%s)\n", converted(value, t, "int64"))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.printf("w.Uint(%s)\n", converted(value, t, "uint64"))
	case reflect.Struct:
		p.printf("encode%s(w, &%s)\n", t.Name(), value)
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.Struct {
			p.printf("encode%s(w, %s)\n", t.Elem().Name(), value)
		} else {
			p.encode("*"+value, t.Elem())
		}
	case reflect.Slice:
		p.printf("w.Array()\nfor i := range %s {\n", value)
		p.encode(value+"[i]", t.Elem())
		p.printf("}\nw.End()\n")
	case reflect.Map:
		// Sorted, so that the same spec always gives the same text.
		p.printf("w.Object()\nfor _, key := range slices.Sorted(maps.Keys(%s)) {\nw.Key(key)\nitem := %s[key]\n", value, value)
		p.encode("item", t.Elem())
		p.printf("}\nw.End()\n")
	default:
		panic(fmt.Sprintf("%s: a type this generator does not know: %v", value, t))
	}
}

func converted(value string, t reflect.Type, want string) string {
	if goName(t) == want {
		return value
	}
	return want + "(" + value + ")"
}
