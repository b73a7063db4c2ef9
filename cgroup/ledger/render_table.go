package ledger

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/internal/json"
)

// WriteTable prints the whole ledger.
func WriteTable(w io.Writer, f Format) error {
	var b bytes.Buffer
	switch f {
	case Text:
		textTable(&b)
	case Markdown:
		markdownTable(&b)
	case JSON:
		jsonTable(&b)
	default:
		return fmt.Errorf("print the ledger: no format %q (text, markdown or json)", f)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// name is the field as the spec's documents write it: memory.limit.
func (e *Entry) name() string {
	if file, ok := strings.CutPrefix(e.Field, "/unified/"); ok {
		return "unified: " + file
	}
	s := strings.ReplaceAll(strings.TrimPrefix(e.Field, "/"), "/*", "[]")
	return strings.ReplaceAll(s, "/", ".")
}

func (p *Place) files() string {
	if len(p.Files) == 0 {
		return "-"
	}
	return strings.Join(p.Files, ", ")
}

func (p *Place) properties() string {
	if len(p.Properties) == 0 {
		return "-"
	}
	names := make([]string, len(p.Properties))
	for i, u := range p.Properties {
		names[i] = u.Name + " (v" + strconv.Itoa(u.Since) + ")"
	}
	return strings.Join(names, ", ")
}

func textTable(b *bytes.Buffer) {
	rows := [][]string{{"FIELD", "V1 FILE", "V1 SYSTEMD", "V2 FILE", "V2 SYSTEMD"}}
	for _, e := range Table() {
		rows = append(rows, []string{e.name(), e.V1.files(), e.V1.properties(), e.V2.files(), e.V2.properties()})
	}
	columns(b, rows)
}

func markdownTable(b *bytes.Buffer) {
	b.WriteString(`# The resource ledger

What each resource of the OCI runtime spec becomes on cgroup v1, on cgroup v2,
and as a systemd unit property on either, with the minimum systemd version.
With systemd the property is set first, and then the file is written and read back.
Printed by ` + "`berth cgroup ledger`" + ` from the table that the runtime itself uses.

`)
	markdownRow(b, "field", "meaning", "v1 file", "v1 systemd", "v2 file", "v2 systemd", "conversion")
	markdownRow(b, "---", "---", "---", "---", "---", "---", "---")
	for _, e := range Table() {
		markdownRow(b, "`"+e.name()+"`", e.Meaning, markdownFiles(&e.V1), markdownProperties(&e.V1),
			markdownFiles(&e.V2), markdownProperties(&e.V2), conversions(&e))
	}
}

func markdownFiles(p *Place) string {
	if len(p.Files) == 0 {
		return p.Missing
	}
	return "`" + strings.Join(p.Files, "`, `") + "`"
}

func markdownProperties(p *Place) string {
	s := ""
	for i, u := range p.Properties {
		if i > 0 {
			s += ", "
		}
		s += "`" + u.Name + "` v" + strconv.Itoa(u.Since)
	}
	return s
}

func conversions(e *Entry) string {
	a, b := e.V1.Conversion, e.V2.Conversion
	switch {
	case a == b:
		return a
	case a == "":
		return "v2: " + b
	case b == "":
		return "v1: " + a
	}
	return "v1: " + a + "; v2: " + b
}

func jsonTable(b *bytes.Buffer) {
	w := new(json.Writer)
	w.Array()
	for _, e := range Table() {
		w.Object()
		jsonField(w, "field", e.Field)
		jsonField(w, "meaning", e.Meaning)
		w.Key("v1")
		e.V1.json(w)
		w.Key("v2")
		e.V2.json(w)
		w.End()
	}
	w.End()
	b.Write(w.Bytes())
	b.WriteByte('\n')
}

func (p *Place) json(w *json.Writer) {
	w.Object()
	jsonField(w, "controller", p.Controller)
	if len(p.Files) > 0 {
		w.Key("files").Strings(p.Files)
	}
	if len(p.Properties) > 0 {
		w.Key("properties").Array()
		for _, u := range p.Properties {
			w.Object()
			jsonField(w, "name", u.Name)
			w.Key("since").Int(int64(u.Since))
			w.End()
		}
		w.End()
	}
	jsonField(w, "conversion", p.Conversion)
	jsonField(w, "missing", p.Missing)
	w.End()
}
