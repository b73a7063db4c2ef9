package wire

import "errors"

// Wire types of the protocol buffer encoding.
const (
	typeVarint     = 0
	typeFixed64    = 1
	typeBytes      = 2
	typeGroupStart = 3
	typeGroupEnd   = 4
	typeFixed32    = 5
)

// maxField is the largest field number that the encoding allows.
const maxField = 1<<29 - 1

// maxGroupDepth bounds the nesting of groups, which no message here uses and
// which are therefore only skipped.
const maxGroupDepth = 10000

var (
	errTruncated = errors.New("message ends in the middle of a field")
	errVarint    = errors.New("varint longer than ten bytes")
	errField     = errors.New("field number out of range")
	errWireType  = errors.New("unknown wire type")
	errGroup     = errors.New("group that does not end where it should")
	errUTF8      = errors.New("string is not valid UTF-8")
)

func appendVarint(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// varintLen is how many bytes appendVarint would write.
func varintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// varint reads a varint off the front of b and says how many bytes it took.
func varint(b []byte) (v uint64, n int, err error) {
	for shift := 0; shift < 70; shift += 7 {
		if n == len(b) {
			return 0, 0, errTruncated
		}
		c := b[n]
		n++
		if shift == 63 && c > 1 {
			return 0, 0, errVarint
		}
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, n, nil
		}
	}
	return 0, 0, errVarint
}

// tag reads a field's number and wire type.
func tag(b []byte) (num, typ, n int, err error) {
	v, n, err := varint(b)
	if err != nil {
		return 0, 0, 0, err
	}
	if v>>3 < 1 || v>>3 > maxField {
		return 0, 0, 0, errField
	}
	return int(v >> 3), int(v & 7), n, nil
}

// skip says how many bytes the value of field num takes, without its tag.
func skip(b []byte, num, typ int) (int, error) {
	switch typ {
	case typeVarint:
		_, n, err := varint(b)
		return n, err
	case typeFixed64:
		return fixed(b, 8)
	case typeFixed32:
		return fixed(b, 4)
	case typeBytes:
		v, n, err := lengthDelimited(b)
		return n + len(v), err
	case typeGroupStart:
		return skipGroup(b, num)
	case typeGroupEnd:
		return 0, errGroup
	}
	return 0, errWireType
}

func fixed(b []byte, size int) (int, error) {
	if len(b) < size {
		return 0, errTruncated
	}
	return size, nil
}

func lengthDelimited(b []byte) (value []byte, n int, err error) {
	size, n, err := varint(b)
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
		num, typ, n, err := tag(b[at:])
		if err != nil {
			return 0, err
		}
		at += n
		switch typ {
		case typeGroupStart:
			if len(open) == maxGroupDepth {
				return 0, errGroup
			}
			open = append(open, num)
		case typeGroupEnd:
			if open[len(open)-1] != num {
				return 0, errGroup
			}
			open = open[:len(open)-1]
		default:
			n, err := skip(b[at:], num, typ)
			if err != nil {
				return 0, err
			}
			at += n
		}
	}
	return at, nil
}
