package ledger

import (
	"bytes"
	"strconv"
)

// jsonWriter writes values with their commas; the caller opens and closes.
type jsonWriter struct {
	*bytes.Buffer
	comma bool
}

func (j *jsonWriter) open(c byte) {
	j.sep()
	j.WriteByte(c)
	j.comma = false
}

func (j *jsonWriter) close(c byte) {
	j.WriteByte(c)
	j.comma = true
}

func (j *jsonWriter) sep() {
	if j.comma {
		j.WriteByte(',')
	}
	j.comma = true
}

func (j *jsonWriter) key(name string) {
	j.sep()
	j.quote(name)
	j.WriteByte(':')
	j.comma = false
}

func (j *jsonWriter) raw(s string) {
	j.sep()
	j.WriteString(s)
}

func (j *jsonWriter) str(s string) {
	j.sep()
	j.quote(s)
}

// field writes a string that is left out when empty.
func (j *jsonWriter) field(name, value string) {
	if value != "" {
		j.key(name)
		j.str(value)
	}
}

func (j *jsonWriter) flag(name string, value bool) {
	if value {
		j.key(name)
		j.raw("true")
	}
}

func (j *jsonWriter) quote(s string) {
	const hex = "0123456789abcdef"
	j.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			j.WriteByte('\\')
			j.WriteRune(r)
		case r < 0x20:
			j.WriteString(`\u00`)
			j.WriteByte(hex[r>>4])
			j.WriteByte(hex[r&15])
		default: // a byte that is no UTF-8 is a replacement character here
			j.WriteRune(r)
		}
	}
	j.WriteByte('"')
}

func jsonTable(b *bytes.Buffer) {
	j := &jsonWriter{Buffer: b}
	j.open('[')
	for _, e := range Table() {
		j.open('{')
		j.field("field", e.Field)
		j.field("meaning", e.Meaning)
		j.key("v1")
		j.place(&e.V1)
		j.key("v2")
		j.place(&e.V2)
		j.close('}')
	}
	j.close(']')
	b.WriteByte('\n')
}

func (j *jsonWriter) place(p *Place) {
	j.open('{')
	j.field("controller", p.Controller)
	if len(p.Files) > 0 {
		j.key("files")
		j.open('[')
		for _, f := range p.Files {
			j.str(f)
		}
		j.close(']')
	}
	if len(p.Properties) > 0 {
		j.key("properties")
		j.open('[')
		for _, u := range p.Properties {
			j.open('{')
			j.field("name", u.Name)
			j.key("since")
			j.raw(strconv.Itoa(u.Since))
			j.close('}')
		}
		j.close(']')
	}
	j.field("conversion", p.Conversion)
	j.flag("fileToo", p.WithFile)
	j.field("missing", p.Missing)
	j.close('}')
}

func jsonTranslation(b *bytes.Buffer, t Translation) {
	j := &jsonWriter{Buffer: b}
	j.open('{')
	j.key("properties")
	j.open('[')
	for _, p := range t.Properties {
		j.open('{')
		j.field("name", p.Name)
		j.key("value")
		j.value(p.Value)
		j.field("pointer", p.Pointer)
		j.field("note", p.Note)
		j.close('}')
	}
	j.close(']')
	j.key("writes")
	j.open('[')
	for i := range t.Writes {
		w := &t.Writes[i]
		j.open('{')
		j.field("controller", w.Controller)
		j.field("version", w.version())
		j.field("file", w.File)
		j.key("value")
		j.str(w.Value)
		j.field("pointer", w.Pointer)
		j.field("note", w.Note)
		j.flag("optional", w.Optional)
		j.close('}')
	}
	j.close(']')
	j.key("warnings")
	j.open('[')
	for _, w := range t.Warnings {
		j.open('{')
		j.field("pointer", w.Pointer)
		j.field("message", w.Message)
		j.close('}')
	}
	j.close(']')
	j.close('}')
	b.WriteByte('\n')
}

// value writes numbers as numbers, with systemd's infinity as the uint64 that
// goes over the bus, and bitmaps as arrays of bytes.
func (j *jsonWriter) value(v any) {
	switch v := v.(type) {
	case bool:
		j.raw(strconv.FormatBool(v))
	case uint64:
		j.raw(strconv.FormatUint(v, 10))
	case []byte:
		j.open('[')
		for _, b := range v {
			j.raw(strconv.Itoa(int(b)))
		}
		j.close(']')
	case []DeviceValue:
		j.open('[')
		for _, d := range v {
			j.open('{')
			j.field("path", d.Path)
			j.key("value")
			j.raw(strconv.FormatUint(d.Value, 10))
			j.close('}')
		}
		j.close(']')
	default:
		j.str(FormatValue(v))
	}
}
