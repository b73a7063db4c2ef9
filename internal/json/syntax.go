package json

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// SyntaxError says where a document stops being JSON, or passes a bound that
// the reader sets to protect itself.
type SyntaxError struct {
	Line    int // counted from 1
	Column  int // in characters, counted from 1
	Offset  int // in bytes, counted from 0
	Message string
}

func (e *SyntaxError) Error() string {
	return "line " + strconv.Itoa(e.Line) + ", column " + strconv.Itoa(e.Column) + ": " + e.Message
}

// fail records the first syntax error and takes the rest of the document away,
// so that every later call sees the end of the input and returns at once.
func (d *Decoder) fail(offset int, message string) {
	if d.err != nil {
		return
	}
	before := d.src[:offset]
	line := strings.Count(before, "\n") + 1
	if i := strings.LastIndexByte(before, '\n'); i >= 0 {
		before = before[i+1:]
	}
	d.err = &SyntaxError{
		Line:    line,
		Column:  utf8.RuneCountInString(before) + 1,
		Offset:  offset,
		Message: message,
	}
	d.src, d.pos = "", 0
}

// failExpected reports that something else than the wanted token stands at the
// current position.
func (d *Decoder) failExpected(want string) {
	if d.err != nil {
		return
	}
	if d.pos >= len(d.src) {
		d.fail(d.pos, "expected "+want+", found the end of the document")
		return
	}
	r, size := utf8.DecodeRuneInString(d.src[d.pos:])
	if r == utf8.RuneError && size <= 1 {
		d.fail(d.pos, "expected "+want+", found a byte that is not UTF-8")
		return
	}
	d.fail(d.pos, "expected "+want+", found "+strconv.QuoteRune(r))
}
