package json

import (
	"math"
	"strconv"
	"time"
)

// mismatch notes a value of the wrong type, and passes over it.
func (d *Decoder) mismatch(want string) {
	start := d.pos
	src := d.src
	d.Skip()
	if d.err == nil {
		d.Fault("expected " + want + ", found " + describe(src[start:d.pos]))
	}
}

// describe names a value for a message. Long ones are cut.
func describe(raw string) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "the string " + shorten(raw)
	case 't', 'f':
		return "the boolean " + raw
	case 'n':
		return "null"
	default:
		return "the number " + shorten(raw)
	}
}

func shorten(raw string) string {
	const most = 60
	if len(raw) <= most {
		return raw
	}
	for n := most; n > most-4; n-- {
		if raw[n]&0xc0 != 0x80 { // not in the middle of a character
			return raw[:n] + "…"
		}
	}
	return raw[:most] + "…"
}

// Null reports whether the current value is null, and passes over it if so.
func (d *Decoder) Null() bool {
	return d.peek() == 'n' && d.scanLiteral("null")
}

// String returns the current value, a string.
func (d *Decoder) String() string {
	if d.peek() != '"' {
		d.mismatch("a string")
		return ""
	}
	return d.scanString()
}

// Bool returns the current value, a boolean.
func (d *Decoder) Bool() bool {
	switch d.peek() {
	case 't':
		return d.scanLiteral("true")
	case 'f':
		d.scanLiteral("false")
		return false
	}
	d.mismatch("true or false")
	return false
}

// Int returns the current value, an integer of the given size in bits. A
// number with a fraction or an exponent is refused even where its value is
// whole: 1e3 and 1.0 are not integers to encoding/json either.
func (d *Decoder) Int(bits int) int64 {
	if !d.number() {
		d.mismatch("an integer")
		return 0
	}
	text, integer := d.scanNumber()
	if d.err != nil {
		return 0
	}
	if !integer {
		d.Fault("expected an integer, found the number " + shorten(text))
		return 0
	}
	v, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		low := int64(math.MinInt64) >> (64 - bits)
		d.Fault("expected an integer from " + strconv.FormatInt(low, 10) + " to " + strconv.FormatInt(^low, 10) +
			", found the number " + shorten(text))
		return 0
	}
	return v
}

// Uint returns the current value, an unsigned integer of the given size in
// bits.
func (d *Decoder) Uint(bits int) uint64 {
	if !d.number() {
		d.mismatch("an unsigned integer")
		return 0
	}
	text, integer := d.scanNumber()
	if d.err != nil {
		return 0
	}
	if !integer || text[0] == '-' {
		d.Fault("expected an unsigned integer, found the number " + shorten(text))
		return 0
	}
	v, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		d.Fault("expected an unsigned integer up to " + strconv.FormatUint(math.MaxUint64>>(64-bits), 10) +
			", found the number " + shorten(text))
		return 0
	}
	return v
}

func (d *Decoder) number() bool {
	c := d.peek()
	return c == '-' || '0' <= c && c <= '9'
}

// Time returns the current value, a time in the form of RFC 3339.
func (d *Decoder) Time() time.Time {
	if d.peek() != '"' {
		d.mismatch("a time")
		return time.Time{}
	}
	text := d.scanString()
	if d.err != nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		d.Fault("expected a time like 2006-01-02T15:04:05Z, found the string " + strconv.Quote(shorten(text)))
	}
	return t
}

// Raw returns the text of the current value, which may be of any type.
func (d *Decoder) Raw() string {
	d.peek()
	src, start := d.src, d.pos
	d.Skip()
	if d.err != nil {
		return ""
	}
	return src[start:d.pos]
}

// Strings returns the current value, an array of strings. It is empty, not nil,
// where the array is.
func (d *Decoder) Strings() []string {
	// The lists of a document share one allocation: a seccomp profile alone
	// holds dozens. Each is cut to its length, so that appending to one copies.
	list := d.strings[len(d.strings):]
	for d.Array(); d.Next(); {
		if len(list) == cap(list) {
			grown := make([]string, len(list), max(2*len(list), 128))
			copy(grown, list)
			list = grown
		}
		list = append(list, d.String())
	}
	if list == nil {
		return []string{}
	}
	d.strings = list
	return list[:len(list):len(list)]
}

// StringMap returns the current value, an object whose values are all strings.
// A key that appears twice is a fault.
func (d *Decoder) StringMap() map[string]string {
	m := map[string]string{}
	for d.Object(); d.Next(); {
		if _, twice := m[d.Key()]; twice {
			d.Duplicate()
		}
		m[d.Key()] = d.String()
	}
	return m
}

// Duplicate notes that the current member's key has been seen before. RFC 8259
// leaves open which value counts, so readers differ: what another program has
// checked may not be what this one would use.
func (d *Decoder) Duplicate() {
	d.Fault("the key appears twice")
}
