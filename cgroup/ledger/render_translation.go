package ledger

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/berth-runtime/berth/internal/json"
)

// Translation is what Translate or Properties gave, to be printed.
type Translation struct {
	Properties []Property
	Writes     []Write
	Warnings   []Warning
}

// WriteTranslation prints one.
func WriteTranslation(w io.Writer, f Format, t Translation) error {
	var b bytes.Buffer
	switch f {
	case Text:
		textTranslation(&b, t)
	case Markdown:
		markdownTranslation(&b, t)
	case JSON:
		jsonTranslation(&b, t)
	default:
		return fmt.Errorf("print a translation: no format %q (text, markdown or json)", f)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (w *Write) version() string {
	if w.V2 {
		return "v2"
	}
	return "v1"
}

func translationRows(t Translation) [][]string {
	var rows [][]string
	for _, p := range t.Properties {
		rows = append(rows, []string{p.Pointer, "unit", p.Name, FormatValue(p.Value), p.Note})
	}
	for i := range t.Writes {
		w := &t.Writes[i]
		note := w.Note
		if w.Optional {
			note = strings.TrimPrefix(note+"; where the file exists", "; ")
		}
		rows = append(rows, []string{w.Pointer, w.version() + " " + w.Controller, w.File, w.Value, note})
	}
	return rows
}

func textTranslation(b *bytes.Buffer, t Translation) {
	if rows := translationRows(t); len(rows) > 0 {
		columns(b, append([][]string{{"FIELD", "WHERE", "NAME", "VALUE", "NOTE"}}, rows...))
	}
	for _, w := range t.Warnings {
		b.WriteString("warning: " + w.String() + "\n")
	}
}

func markdownTranslation(b *bytes.Buffer, t Translation) {
	markdownRow(b, "field", "where", "name", "value", "note")
	markdownRow(b, "---", "---", "---", "---", "---")
	for _, row := range translationRows(t) {
		markdownRow(b, "`"+row[0]+"`", row[1], "`"+row[2]+"`", "`"+row[3]+"`", row[4])
	}
	for _, w := range t.Warnings {
		b.WriteString("\nWarning: `" + w.Pointer + "`: " + w.Message + "\n")
	}
}

func jsonTranslation(b *bytes.Buffer, t Translation) {
	w := new(json.Writer)
	w.Object()
	w.Key("properties").Array()
	for _, p := range t.Properties {
		w.Object()
		jsonField(w, "name", p.Name)
		w.Key("value")
		jsonValue(w, p.Value)
		jsonField(w, "pointer", p.Pointer)
		jsonField(w, "note", p.Note)
		w.End()
	}
	w.End()
	w.Key("writes").Array()
	for i := range t.Writes {
		write := &t.Writes[i]
		w.Object()
		jsonField(w, "controller", write.Controller)
		jsonField(w, "version", write.version())
		jsonField(w, "file", write.File)
		w.Key("value").String(write.Value)
		jsonField(w, "pointer", write.Pointer)
		jsonField(w, "note", write.Note)
		if write.Optional {
			w.Key("optional").Bool(true)
		}
		w.End()
	}
	w.End()
	w.Key("warnings").Array()
	for _, warning := range t.Warnings {
		w.Object()
		jsonField(w, "pointer", warning.Pointer)
		jsonField(w, "message", warning.Message)
		w.End()
	}
	w.End()
	w.End()
	b.Write(w.Bytes())
	b.WriteByte('\n')
}

// jsonValue writes numbers as numbers, with systemd's infinity as the uint64 that
// goes over the bus, and bitmaps as arrays of bytes.
func jsonValue(w *json.Writer, v any) {
	switch v := v.(type) {
	case bool:
		w.Bool(v)
	case uint64:
		w.Uint(v)
	case []byte:
		w.Array()
		for _, b := range v {
			w.Uint(uint64(b))
		}
		w.End()
	case []DeviceValue:
		w.Array()
		for _, d := range v {
			w.Object()
			jsonField(w, "path", d.Path)
			w.Key("value").Uint(d.Value)
			w.End()
		}
		w.End()
	default:
		w.String(FormatValue(v))
	}
}
