package spec

import (
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/internal/json"
)

// A Complaint says what is wrong with one entry of a config.
type Complaint struct {
	Pointer string // JSON pointer (RFC 6901); "" is the whole document
	Message string // what is wrong and what would be right
	Hint    string // what to do about it, or ""
}

// Error returns the complaint as one line.
func (c Complaint) Error() string {
	var b strings.Builder
	c.write(&b)
	return b.String()
}

func (c Complaint) write(b *strings.Builder) {
	if c.Pointer != "" {
		b.WriteString(escape.Line(c.Pointer))
		b.WriteString(": ")
	}
	b.WriteString(escape.Line(c.Message))
	if c.Hint != "" {
		b.WriteString(" (")
		b.WriteString(escape.Line(c.Hint))
		b.WriteString(")")
	}
}

// Errors are all the complaints about a config, in the order of their finding.
// Beyond fifty they are only counted, by a last complaint without pointer.
type Errors []Complaint

// Error returns all complaints as one line.
func (e Errors) Error() string {
	var b strings.Builder
	for i, c := range e {
		if i > 0 {
			b.WriteString("; ")
		}
		c.write(&b)
	}
	return b.String()
}

const maxComplaints = 50

// collector gathers complaints up to the bound.
type collector struct {
	kept Errors
	more int
}

func (l *collector) add(c Complaint) {
	if len(l.kept) == maxComplaints {
		l.more++
		return
	}
	l.kept = append(l.kept, c)
}

func (l *collector) errors() error {
	switch {
	case len(l.kept) == 0:
		return nil
	case l.more == 0:
		return l.kept
	}
	return append(l.kept, Complaint{Message: "and " + strconv.Itoa(l.more) + " more"})
}

// Join returns the JSON pointer of a key below another pointer.
func Join(pointer, key string) string {
	return string(json.AppendKey([]byte(pointer), key))
}

// At returns the JSON pointer of an array's element.
func At(pointer string, index int) string {
	return string(json.AppendIndex([]byte(pointer), index))
}
