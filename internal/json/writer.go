package json

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// Writer appends one JSON document to a byte slice. The zero value writes
// without white space.
//
//	var w json.Writer
//	w.Object()
//	w.Key("id").String(id)
//	w.Key("pids").Array()
//	w.Int(1)
//	w.End()
//	w.End()
//	data := w.Bytes()
//
// The caller sees to it that keys stand in objects only, and that each Object
// and Array has its End.
type Writer struct {
	// Indent is put before a member or element once per level; with "" the
	// whole document is one line.
	Indent string

	buf   []byte
	ends  []byte // the closing brackets still to come
	empty bool   // nothing has been written into the innermost container yet
	key   bool   // a key has been written, its value comes next
}

// NewWriter returns a Writer that appends to buf.
func NewWriter(buf []byte, indent string) *Writer { return &Writer{Indent: indent, buf: buf} }

// Bytes returns what has been written.
func (w *Writer) Bytes() []byte { return w.buf }

// Object begins an object, up to the matching End.
func (w *Writer) Object() *Writer { return w.begin('{', '}') }

// Array begins an array, up to the matching End.
func (w *Writer) Array() *Writer { return w.begin('[', ']') }

func (w *Writer) begin(opening, closing byte) *Writer {
	w.separate()
	w.buf = append(w.buf, opening)
	w.ends = append(w.ends, closing)
	w.empty = true
	return w
}

// End closes the innermost object or array.
func (w *Writer) End() *Writer {
	last := len(w.ends) - 1
	closing := w.ends[last]
	w.ends = w.ends[:last]
	if !w.empty {
		w.newline()
	}
	w.empty = false
	w.buf = append(w.buf, closing)
	return w
}

// Key begins an object's member.
func (w *Writer) Key(key string) *Writer {
	w.separate()
	w.buf = AppendString(w.buf, key)
	w.buf = append(w.buf, ':')
	if w.Indent != "" {
		w.buf = append(w.buf, ' ')
	}
	w.key = true
	return w
}

// separate puts the comma and the white space that a new value needs.
func (w *Writer) separate() {
	switch {
	case w.key:
		w.key = false
		return
	case len(w.ends) == 0:
		return
	case !w.empty:
		w.buf = append(w.buf, ',')
	}
	w.empty = false
	w.newline()
}

func (w *Writer) newline() {
	if w.Indent == "" {
		return
	}
	buf := append(w.buf, '\n')
	for range w.ends {
		buf = append(buf, w.Indent...)
	}
	w.buf = buf
}

// String writes a string.
func (w *Writer) String(s string) *Writer {
	w.separate()
	w.buf = AppendString(w.buf, s)
	return w
}

// Int writes an integer.
func (w *Writer) Int(v int64) *Writer {
	w.separate()
	w.buf = strconv.AppendInt(w.buf, v, 10)
	return w
}

// Uint writes an unsigned integer.
func (w *Writer) Uint(v uint64) *Writer {
	w.separate()
	w.buf = strconv.AppendUint(w.buf, v, 10)
	return w
}

// Bool writes true or false.
func (w *Writer) Bool(v bool) *Writer {
	w.separate()
	w.buf = strconv.AppendBool(w.buf, v)
	return w
}

// Null writes null.
func (w *Writer) Null() *Writer { return w.Raw("null") }

// Time writes a time in the form of RFC 3339, with nanoseconds.
func (w *Writer) Time(t time.Time) *Writer {
	w.separate()
	w.buf = append(w.buf, '"')
	w.buf = t.AppendFormat(w.buf, time.RFC3339Nano)
	w.buf = append(w.buf, '"')
	return w
}

// Raw writes a value that is JSON already. Its white space stays as it is.
func (w *Writer) Raw(value string) *Writer {
	w.separate()
	w.buf = append(w.buf, value...)
	return w
}

// Strings writes an array of strings.
func (w *Writer) Strings(list []string) *Writer {
	w.Array()
	for _, s := range list {
		w.String(s)
	}
	return w.End()
}

const hex = "0123456789abcdef"

// AppendString appends a string in quotes. Bytes that are not UTF-8 become
// U+FFFD, since JSON has no way to carry them. What HTML needs escaped is left
// alone: these documents are read by programs and people, not by browsers.
func AppendString(buf []byte, s string) []byte {
	buf = append(buf, '"')
	start := 0 // of what is not appended yet
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				buf = append(buf, s[start:i]...)
				buf = append(buf, "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		buf = append(buf, s[start:i]...)
		switch c {
		case '"', '\\':
			buf = append(buf, '\\', c)
		case '\n':
			buf = append(buf, '\\', 'n')
		case '\r':
			buf = append(buf, '\\', 'r')
		case '\t':
			buf = append(buf, '\\', 't')
		default:
			buf = append(buf, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	buf = append(buf, s[start:]...)
	return append(buf, '"')
}
