package dbus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Decode reads values of a signature, all of the text. The Go values are those
// that Encode takes; an array is []byte, []string, or else []any.
func Decode(text []byte, order binary.ByteOrder, s Signature) ([]any, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	d := &decoder{text: text, order: order}
	values, err := d.row(s, 0)
	if err != nil {
		return nil, err
	}
	if d.at != len(text) {
		return nil, fmt.Errorf("%d bytes behind the last value", len(text)-d.at)
	}
	return values, nil
}

type decoder struct {
	text  []byte
	at    int
	order binary.ByteOrder
}

var errShort = errors.New("a value has no end")

func (d *decoder) align(n int) error {
	for d.at%n != 0 {
		if d.at >= len(d.text) {
			return errShort
		}
		if d.text[d.at] != 0 {
			return errors.New("padding is not zero")
		}
		d.at++
	}
	return nil
}

// take gives the next n bytes, aligned.
func (d *decoder) take(n, alignment int) ([]byte, error) {
	if err := d.align(alignment); err != nil {
		return nil, err
	}
	if n < 0 || n > len(d.text)-d.at {
		return nil, errShort
	}
	b := d.text[d.at : d.at+n]
	d.at += n
	return b, nil
}

func (d *decoder) uint32() (uint32, error) {
	b, err := d.take(4, 4)
	if err != nil {
		return 0, err
	}
	return d.order.Uint32(b), nil
}

func (d *decoder) row(s Signature, depth int) ([]any, error) {
	var values []any
	for s != "" {
		first, rest, err := s.next()
		if err != nil {
			return nil, err
		}
		v, err := d.value(first, depth)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		s = rest
	}
	return values, nil
}

func (d *decoder) value(s Signature, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("values are inside each other %d deep", depth)
	}
	switch s[0] {
	case 's':
		return d.string()
	case 'o':
		text, err := d.string()
		if err == nil && !ObjectPath(text).valid() {
			err = fmt.Errorf("%q is not a path of an object", text)
		}
		return ObjectPath(text), err
	case 'g':
		return d.signature()
	case 'v':
		return d.variant(depth)
	case 'a':
		return d.array(s[1:], depth)
	case '(', '{':
		if err := d.align(8); err != nil {
			return nil, err
		}
		return d.row(s[1:len(s)-1], depth+1)
	}
	return d.number(s[0])
}

func (d *decoder) number(c byte) (any, error) {
	size := alignment(c)
	b, err := d.take(size, size)
	if err != nil {
		return nil, err
	}
	switch c {
	case 'y':
		return b[0], nil
	case 'b':
		switch d.order.Uint32(b) {
		case 0:
			return false, nil
		case 1:
			return true, nil
		}
		return nil, errors.New("a boolean is neither 0 nor 1")
	case 'n':
		return int16(d.order.Uint16(b)), nil
	case 'q':
		return d.order.Uint16(b), nil
	case 'i':
		return int32(d.order.Uint32(b)), nil
	case 'u', 'h': // h is the index of a descriptor, and no descriptor was passed
		return d.order.Uint32(b), nil
	case 'x':
		return int64(d.order.Uint64(b)), nil
	case 't':
		return d.order.Uint64(b), nil
	case 'd':
		return math.Float64frombits(d.order.Uint64(b)), nil
	}
	return nil, fmt.Errorf("there is no type %q", c)
}

// ended takes text with the NUL byte behind it.
func (d *decoder) ended(n int) (string, error) {
	if n < 0 || n >= len(d.text)-d.at {
		return "", errShort
	}
	b, err := d.take(n+1, 1)
	if err != nil {
		return "", err
	}
	if b[n] != 0 {
		return "", errors.New("a text has no NUL byte behind it")
	}
	return string(b[:n]), nil
}

func (d *decoder) string() (string, error) {
	n, err := d.uint32()
	if err != nil {
		return "", err
	}
	s, err := d.ended(int(n))
	if err != nil {
		return "", err
	}
	for i := range len(s) {
		if s[i] == 0 {
			return "", errors.New("a text has a NUL byte in it")
		}
	}
	if !utf8.ValidString(s) {
		return "", errors.New("a text is not in UTF-8")
	}
	return s, nil
}

func (d *decoder) signature() (Signature, error) {
	b, err := d.take(1, 1)
	if err != nil {
		return "", err
	}
	text, err := d.ended(int(b[0]))
	if err != nil {
		return "", err
	}
	return Signature(text), Signature(text).check()
}

func (d *decoder) variant(depth int) (Variant, error) {
	s, err := d.signature()
	if err != nil {
		return Variant{}, err
	}
	if _, rest, err := s.next(); err != nil || rest != "" {
		return Variant{}, fmt.Errorf("the type %q of a variant is not one type", string(s))
	}
	v, err := d.value(s, depth+1)
	return Variant{s, v}, err
}

func (d *decoder) array(s Signature, depth int) (any, error) {
	n, err := d.uint32()
	if err != nil {
		return nil, err
	}
	if n > maxArray {
		return nil, fmt.Errorf("an array of %d bytes, where %d are allowed", n, maxArray)
	}
	if err := d.align(alignment(s[0])); err != nil {
		return nil, err
	}
	if int(n) > len(d.text)-d.at {
		return nil, errShort
	}
	end := d.at + int(n)
	switch s {
	case "y":
		b, err := d.take(int(n), 1)
		return append([]byte{}, b...), err
	case "s":
		return list(d, end, func() (string, error) { return d.string() })
	}
	return list(d, end, func() (any, error) { return d.value(s, depth+1) })
}

// list reads elements up to an end, which is to be the last one's.
func list[T any](d *decoder, end int, read func() (T, error)) ([]T, error) {
	values := []T{}
	for d.at < end {
		v, err := read()
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	if d.at != end {
		return nil, errors.New("an array is longer than it says")
	}
	return values, nil
}
