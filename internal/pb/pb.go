package pb

import (
	"encoding/binary"
	"errors"
)

// Wire types of the protocol buffer encoding.
const (
	TypeVarint     = 0
	TypeFixed64    = 1
	TypeBytes      = 2
	TypeGroupStart = 3
	TypeGroupEnd   = 4
	TypeFixed32    = 5
)

// maxField is the largest field number that the encoding allows. Inside a group, which can only be
// skipped here, Google's generated code takes any number of 31 bits (message sets had such): so do
// we, or the two would disagree on what a message is.
const (
	maxField      = 1<<29 - 1
	maxGroupField = 1<<31 - 1
)

// maxGroupDepth bounds the nesting of groups, which no message here uses and
// which are therefore only skipped.
const maxGroupDepth = 10000

var (
	errTruncated = errors.New("message ends in the middle of a field")
	errVarint    = errors.New("varint longer than ten bytes")
	errField     = errors.New("field number out of range")
	errWireType  = errors.New("unknown wire type")
	errGroup     = errors.New("group that does not end where it should")
)

// AppendTag writes a field's number and wire type.
func AppendTag(b []byte, num, typ int) []byte {
	return binary.AppendUvarint(b, uint64(num)<<3|uint64(typ))
}

// AppendBytes writes a value with its length before it.
func AppendBytes[T []byte | string](b []byte, value T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

// VarintLen is how many bytes a varint takes.
func VarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// ReadVarint reads a varint off the front of b and says how many bytes it took.
func ReadVarint(b []byte) (v uint64, n int, err error) {
	v, n = binary.Uvarint(b)
	switch {
	case n == 0:
		return 0, 0, errTruncated
	case n < 0:
		return 0, 0, errVarint
	}
	return v, n, nil
}

// ReadTag reads a field's number and wire type.
func ReadTag(b []byte) (num, typ, n int, err error) {
	return readTag(b, maxField)
}

func readTag(b []byte, most uint64) (num, typ, n int, err error) {
	v, n, err := ReadVarint(b)
	if err != nil {
		return 0, 0, 0, err
	}
	if v>>3 < 1 || v>>3 > most {
		return 0, 0, 0, errField
	}
	return int(v >> 3), int(v & 7), n, nil
}

// Skip says how many bytes the value of field num takes, without its tag.
func Skip(b []byte, num, typ int) (int, error) {
	switch typ {
	case TypeVarint:
		_, n, err := ReadVarint(b)
		return n, err
	case TypeFixed64:
		return ReadFixed(b, 8)
	case TypeFixed32:
		return ReadFixed(b, 4)
	case TypeBytes:
		v, n, err := ReadBytes(b)
		return n + len(v), err
	case TypeGroupStart:
		return skipGroup(b, num)
	case TypeGroupEnd:
		return 0, errGroup
	}
	return 0, errWireType
}

// ReadFixed says that a value of a fixed size is there.
func ReadFixed(b []byte, size int) (int, error) {
	if len(b) < size {
		return 0, errTruncated
	}
	return size, nil
}

// ReadBytes reads a value with its length before it, which takes n bytes.
func ReadBytes(b []byte) (value []byte, n int, err error) {
	size, n, err := ReadVarint(b)
	if err != nil {
		return nil, 0, err
	}
	if size > uint64(len(b)-n) {
		return nil, 0, errTruncated
	}
	return b[n : n+int(size)], n, nil
}

// skipGroup keeps the open groups on a stack of its own, so that a hostile
// message cannot make this recurse.
func skipGroup(b []byte, num int) (int, error) {
	open := []int{num}
	at := 0
	for len(open) > 0 {
		num, typ, n, err := readTag(b[at:], maxGroupField)
		if err != nil {
			return 0, err
		}
		at += n
		switch typ {
		case TypeGroupStart:
			if len(open) == maxGroupDepth {
				return 0, errGroup
			}
			open = append(open, num)
		case TypeGroupEnd:
			if open[len(open)-1] != num {
				return 0, errGroup
			}
			open = open[:len(open)-1]
		default:
			n, err := Skip(b[at:], num, typ)
			if err != nil {
				return 0, err
			}
			at += n
		}
	}
	return at, nil
}
