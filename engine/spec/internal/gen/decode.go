package main

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"
)

func decoders() ([]byte, error) {
	p := new(printer)
	p.printf(header, specs.Version)
	p.printf("import (\n\t\"io/fs\"\n\t\"strconv\"\n\n\t\"github.com/opencontainers/runtime-spec/specs-go\"\n\n" +
		"\t\"github.com/berth-runtime/berth/internal/json\"\n\t\"github.com/berth-runtime/berth/internal/ptr\"\n)\n")
	p.printf("\n// foreign are the sections of other platforms.\nvar foreign = %#v\n", foreign)
	for _, t := range structs(reflect.TypeFor[specs.Spec]()) {
		p.decoder(t)
	}
	return p.source()
}

func (p *printer) decoder(t reflect.Type) {
	fields := fieldsOf(t)
	p.printf("\nfunc decode%s(d *json.Decoder, v *%s) {\n", t.Name(), goName(t))
	p.printf("var seen uint64\nok := d.Object()\nfor d.Next() {\nif d.Null() {\ncontinue\n}\nswitch d.Key() {\n")
	for i, f := range fields {
		p.printf("case %q:\nseen = mark(d, seen, 1<<%d)\n", f.key, i)
		p.decode("v."+f.access, f.typ)
	}
	p.printf("default:\notherCase(d")
	for _, f := range fields {
		p.printf(", %q", f.key)
	}
	p.printf(")\n}\n}\n")
	required := uint64(0)
	for i, f := range fields {
		if f.required {
			required |= 1 << i
		}
	}
	if required == 0 {
		p.printf("_ = ok\n}\n")
		return
	}
	p.printf("if ok && seen&%#x != %#x {\n", required, required)
	for i, f := range fields {
		if f.required {
			if f.when != "" {
				p.printf("if %s {\nrequire(d, seen, 1<<%d, %q)\n}\n", f.when, i, f.key)
				continue
			}
			p.printf("require(d, seen, 1<<%d, %q)\n", i, f.key)
		}
	}
	p.printf("}\n}\n")
}

// decode prints the statements that read the current value into target.
func (p *printer) decode(target string, t reflect.Type) {
	switch {
	case scalar(t) != "":
		p.printf("%s = %s\n", target, scalar(t))
	case t.Kind() == reflect.Struct:
		p.printf("decode%s(d, &%s)\n", t.Name(), target)
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		p.printf("%s = new(%s)\ndecode%s(d, %s)\n", target, goName(t.Elem()), t.Elem().Name(), target)
	case t.Kind() == reflect.Pointer && scalar(t.Elem()) != "":
		p.printf("%s = ptr.To(%s)\n", target, scalar(t.Elem()))
	case t == reflect.TypeFor[[]string]():
		p.printf("%s = d.Strings()\n", target)
	case t.Kind() == reflect.Slice && scalar(t.Elem()) != "":
		p.printf("%s = %s{}\nfor d.Array(); d.Next(); {\n%s = append(%s, %s)\n}\n", target, goName(t), target, target, scalar(t.Elem()))
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		p.printf("%s = %s{}\nfor d.Array(); d.Next(); {\n", target, goName(t))
		p.printf("%s = append(%s, %s{})\n", target, target, goName(t.Elem()))
		p.printf("decode%s(d, &%s[len(%s)-1])\n}\n", t.Elem().Name(), target, target)
	case t == reflect.TypeFor[map[string]string]():
		p.printf("%s = d.StringMap()\n", target)
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String && t.Elem().Kind() == reflect.Struct:
		p.printf("%s = %s{}\nfor d.Object(); d.Next(); {\nkey := d.Key()\n", target, goName(t))
		p.printf("if _, twice := %s[key]; twice {\nd.Duplicate()\n}\n", target)
		p.printf("var item %s\ndecode%s(d, &item)\n%s[key] = item\n}\n", goName(t.Elem()), t.Elem().Name(), target)
	default:
		panic(fmt.Sprintf("%s: a type this generator does not know: %v", target, t))
	}
}

// scalar returns the expression that reads a value of a basic type, or "".
func scalar(t reflect.Type) string {
	call, natural := "", ""
	switch t.Kind() {
	case reflect.String:
		call, natural = "d.String()", "string"
	case reflect.Bool:
		call, natural = "d.Bool()", "bool"
	case reflect.Int, reflect.Uint: // as wide as on the machine that runs it
		call = map[reflect.Kind]string{reflect.Int: "d.Int(strconv.IntSize)", reflect.Uint: "d.Uint(strconv.IntSize)"}[t.Kind()]
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		call, natural = "d.Int("+strconv.Itoa(t.Bits())+")", "int64"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		call, natural = "d.Uint("+strconv.Itoa(t.Bits())+")", "uint64"
	default:
		return ""
	}
	if goName(t) == natural {
		return call
	}
	return goName(t) + "(" + call + ")"
}
