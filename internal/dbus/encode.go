package dbus

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// A Variant is a value with its type, one complete type.
type Variant struct {
	Type  Signature
	Value any
}

// Encode appends values of a signature in little endian, at an offset that is a
// multiple of eight.
//
// The letters of the signature stand for byte (y), bool (b), int16, uint16 (n, q),
// int32, uint32 (i, u), int64, uint64 (x, t), float64 (d), string (s), ObjectPath
// (o), Signature (g) and Variant (v). A struct and a dictionary entry are []any;
// an array is []any too, or []byte, []string, []uint32 or []uint64.
func Encode(to []byte, s Signature, values []any) ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	e := &encoder{buf: to, start: len(to)}
	for i, v := range values {
		if s == "" {
			return nil, fmt.Errorf("there are %d values more than types", len(values)-i)
		}
		first, rest, err := s.next()
		if err != nil {
			return nil, err
		}
		if err := e.value(first, v, 0); err != nil {
			return nil, fmt.Errorf("value %d: %w", i+1, err)
		}
		s = rest
	}
	if s != "" {
		return nil, fmt.Errorf("no value for the types %q", string(s))
	}
	return e.buf, nil
}

type encoder struct {
	buf   []byte
	start int // alignment counts from here
}

func (e *encoder) align(n int) {
	for (len(e.buf)-e.start)%n != 0 {
		e.buf = append(e.buf, 0)
	}
}

func (e *encoder) uint32(v uint32) {
	e.align(4)
	e.buf = binary.LittleEndian.AppendUint32(e.buf, v)
}

func (e *encoder) uint64(v uint64) {
	e.align(8)
	e.buf = binary.LittleEndian.AppendUint64(e.buf, v)
}

func (e *encoder) uint16(v uint16) {
	e.align(2)
	e.buf = binary.LittleEndian.AppendUint16(e.buf, v)
}

// mismatch is a value that is not of its type, a mistake of the caller.
func mismatch(s Signature, v any) error { return fmt.Errorf("type %q has no value %T", string(s), v) }

func (e *encoder) value(s Signature, v any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("values are inside each other %d deep", depth)
	}
	switch s[0] {
	case 'a':
		return e.array(s[1:], v, depth)
	case '(', '{':
		return e.members(s[1:len(s)-1], v, depth)
	}
	switch v := v.(type) {
	case byte:
		if s == "y" {
			e.buf = append(e.buf, v)
			return nil
		}
	case bool:
		if s == "b" {
			n := uint32(0)
			if v {
				n = 1
			}
			e.uint32(n)
			return nil
		}
	case int16:
		if s == "n" {
			e.uint16(uint16(v))
			return nil
		}
	case uint16:
		if s == "q" {
			e.uint16(v)
			return nil
		}
	case int32:
		if s == "i" {
			e.uint32(uint32(v))
			return nil
		}
	case uint32:
		if s == "u" {
			e.uint32(v)
			return nil
		}
	case int64:
		if s == "x" {
			e.uint64(uint64(v))
			return nil
		}
	case uint64:
		if s == "t" {
			e.uint64(v)
			return nil
		}
	case float64:
		if s == "d" {
			e.uint64(math.Float64bits(v))
			return nil
		}
	case string:
		if s == "s" {
			return e.text(v)
		}
	case ObjectPath:
		if s == "o" {
			if !v.valid() {
				return fmt.Errorf("%q is not a path of an object", string(v))
			}
			return e.text(string(v))
		}
	case Signature:
		if s == "g" {
			return e.signature(v)
		}
	case Variant:
		if s == "v" {
			return e.variant(v, depth)
		}
	}
	return mismatch(s, v)
}

// text refuses what makes a bus drop the connection.
func (e *encoder) text(s string) error {
	if strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		return fmt.Errorf("%q is no text in UTF-8 without NUL bytes", s)
	}
	e.uint32(uint32(len(s)))
	e.buf = append(append(e.buf, s...), 0)
	return nil
}

func (e *encoder) signature(s Signature) error {
	if err := s.check(); err != nil {
		return err
	}
	e.buf = append(e.buf, byte(len(s)))
	e.buf = append(append(e.buf, s...), 0)
	return nil
}

func (e *encoder) variant(v Variant, depth int) error {
	if err := e.signature(v.Type); err != nil {
		return err
	}
	if _, rest, err := v.Type.next(); err != nil || rest != "" {
		return fmt.Errorf("the type %q of a variant is not one type", string(v.Type))
	}
	return e.value(v.Type, v.Value, depth+1)
}

func (e *encoder) array(s Signature, v any, depth int) error {
	e.uint32(0)
	length := len(e.buf) - 4
	e.align(alignment(s[0])) // not a part of the length
	begin := len(e.buf)
	var err error
	switch list := v.(type) {
	case []byte:
		if s != "y" {
			return mismatch("a"+s, v)
		}
		e.buf = append(e.buf, list...)
	case []string:
		err = elements(e, s, list, depth)
	case []uint32:
		err = elements(e, s, list, depth)
	case []uint64:
		err = elements(e, s, list, depth)
	case []any:
		err = elements(e, s, list, depth)
	default:
		return mismatch("a"+s, v)
	}
	if err != nil {
		return err
	}
	size := len(e.buf) - begin
	if size > maxArray {
		return fmt.Errorf("an array of %d bytes, where %d are allowed", size, maxArray)
	}
	binary.LittleEndian.PutUint32(e.buf[length:], uint32(size))
	return nil
}

func elements[T any](e *encoder, s Signature, list []T, depth int) error {
	for _, v := range list {
		if err := e.value(s, v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) members(s Signature, v any, depth int) error {
	list, ok := v.([]any)
	if !ok {
		return mismatch("("+s+")", v)
	}
	e.align(8)
	for _, member := range list {
		if s == "" {
			return fmt.Errorf("a struct has more values than types")
		}
		first, rest, err := s.next()
		if err != nil {
			return err
		}
		if err := e.value(first, member, depth+1); err != nil {
			return err
		}
		s = rest
	}
	if s != "" {
		return fmt.Errorf("a struct has no value for the types %q", string(s))
	}
	return nil
}

// valid has the rules for paths: elements of letters, digits and _ behind slashes.
func (p ObjectPath) valid() bool {
	if p == "/" {
		return true
	}
	if p == "" || p[0] != '/' {
		return false
	}
	for element := range strings.SplitSeq(string(p[1:]), "/") {
		if element == "" {
			return false
		}
		for i := range len(element) {
			c := element[i]
			if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_') {
				return false
			}
		}
	}
	return true
}
