package ledger

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berth-runtime/berth/internal/json"
)

// Format is a way to print.
type Format string

// The formats.
const (
	Text     Format = "text"
	Markdown Format = "markdown"
	JSON     Format = "json"
)

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

// markdownRow writes a row of a table.
func markdownRow(b *bytes.Buffer, cells ...string) {
	for _, c := range cells {
		b.WriteString("| ")
		b.WriteString(strings.ReplaceAll(c, "|", `\|`))
		b.WriteByte(' ')
	}
	b.WriteString("|\n")
}

// jsonField writes a string that is left out when empty.
func jsonField(w *json.Writer, name, value string) {
	if value != "" {
		w.Key(name).String(value)
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
