package ledger

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Format is a way to print.
type Format string

// The formats. JSON is made by hand here, because encoding/json would be
// initialised at the start of every program that translates resources.
const (
	Text     Format = "text"
	Markdown Format = "markdown"
	JSON     Format = "json"
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

// columns pads each column to its widest cell, but for the last.
func columns(b *bytes.Buffer, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += cell + strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+2)
		}
		b.WriteString(strings.TrimRight(line, " "))
		b.WriteByte('\n')
	}
}

func markdownTable(b *bytes.Buffer) {
	b.WriteString(`# The resource ledger

What each resource of the OCI runtime spec becomes on cgroup v1, on cgroup v2,
and as a property of a systemd unit on either, with the least version of systemd.
Printed by ` + "`berth cgroup ledger`" + ` from the table that the runtime works by.

`)
	row := func(cells ...string) {
		for _, c := range cells {
			b.WriteString("| ")
			b.WriteString(strings.ReplaceAll(c, "|", `\|`))
			b.WriteByte(' ')
		}
		b.WriteString("|\n")
	}
	row("field", "meaning", "v1 file", "v1 systemd", "v2 file", "v2 systemd", "conversion")
	row("---", "---", "---", "---", "---", "---", "---")
	for _, e := range Table() {
		row("`"+e.name()+"`", e.Meaning, markdownFiles(&e.V1), markdownProperties(&e.V1),
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
	if s != "" && p.WithFile {
		s += ", and the file"
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
	b.WriteString("| field | where | name | value | note |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range translationRows(t) {
		fmt.Fprintf(b, "| `%s` | %s | `%s` | `%s` | %s |\n", row[0], row[1], row[2], row[3], row[4])
	}
	for _, w := range t.Warnings {
		b.WriteString("\nWarning: `" + w.Pointer + "`: " + w.Message + "\n")
	}
}

// FormatValue prints the value of a property.
func FormatValue(v any) string {
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v)
	case string:
		return v
	case uint64:
		if v == infinite {
			return "infinity"
		}
		return strconv.FormatUint(v, 10)
	case []byte:
		return fmt.Sprintf("%#x", v) + " (" + ListFromBitmap(v).String() + ")"
	case []DeviceValue:
		parts := make([]string, len(v))
		for i, d := range v {
			parts[i] = d.Path + " " + FormatValue(d.Value)
		}
		return strings.Join(parts, ", ")
	}
	return fmt.Sprint(v)
}
