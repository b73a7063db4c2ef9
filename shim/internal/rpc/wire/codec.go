package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/berth-runtime/berth/internal/pb"
)

var errUTF8 = errors.New("string is not valid UTF-8")

// Message is one protocol buffer message. Its fields method names every field,
// in the order of their numbers, to the codec that is passing by: an encoding
// codec writes each field that is not zero, a decoding one stores into the
// field that has the number it has just read.
type Message interface {
	fields(*codec)
}

// codec walks a message in one direction.
type codec struct {
	out []byte // encoding: what has been written

	decoding bool
	in       []byte // decoding: the bytes from the current value on
	num, typ int    // decoding: the current field
	used     int    // decoding: bytes of in that a field took
	taken    bool   // decoding: whether a field took the value
	err      error
}

// Marshal encodes m, with its fields in order and maps sorted by key.
func Marshal(m Message) []byte {
	var c codec
	m.fields(&c)
	return c.out
}

// Unmarshal decodes b into m, over what m already holds. Fields that m does
// not name are skipped, as are fields of a wire type that they cannot have.
func Unmarshal(b []byte, m Message) error {
	c := codec{decoding: true}
	for len(b) > 0 {
		num, typ, n, err := pb.ReadTag(b)
		if err != nil {
			return err
		}
		b = b[n:]
		c.in, c.num, c.typ, c.used, c.taken = b, num, typ, 0, false
		m.fields(&c)
		if c.err != nil {
			return c.err
		}
		if !c.taken {
			if c.used, err = pb.Skip(b, num, typ); err != nil {
				return err
			}
		}
		b = b[c.used:]
	}
	return nil
}

func (c *codec) tag(num, typ int) {
	c.out = pb.AppendTag(c.out, num, typ)
}

// wants says whether the decoder stands at field num with wire type typ.
func (c *codec) wants(num, typ int) bool {
	return c.decoding && c.err == nil && !c.taken && c.num == num && c.typ == typ
}

func (c *codec) take(n int, err error) bool {
	c.taken, c.used, c.err = true, n, err
	return err == nil
}

// varint is the one field of all integers: get gives the value to encode, set
// takes the decoded one.
func (c *codec) varint(num int, get uint64, set func(uint64)) {
	if !c.decoding {
		if get != 0 {
			c.tag(num, pb.TypeVarint)
			c.out = binary.AppendUvarint(c.out, get)
		}
		return
	}
	if c.wants(num, pb.TypeVarint) {
		v, n, err := pb.ReadVarint(c.in)
		if c.take(n, err) {
			set(v)
		}
	}
}

func (c *codec) uint64(num int, p *uint64) { c.varint(num, *p, func(v uint64) { *p = v }) }
func (c *codec) uint32(num int, p *uint32) {
	c.varint(num, uint64(*p), func(v uint64) { *p = uint32(v) })
}
func (c *codec) int64(num int, p *int64) { c.varint(num, uint64(*p), func(v uint64) { *p = int64(v) }) }
func (c *codec) int32(num int, p *int32) {
	c.varint(num, uint64(int64(*p)), func(v uint64) { *p = int32(v) })
}

func (c *codec) bool(num int, p *bool) {
	var v uint64
	if *p {
		v = 1
	}
	c.varint(num, v, func(v uint64) { *p = v != 0 })
}

func (c *codec) double(num int, p *float64) {
	if !c.decoding {
		if bits := math.Float64bits(*p); bits != 0 {
			c.tag(num, pb.TypeFixed64)
			c.out = binary.LittleEndian.AppendUint64(c.out, bits)
		}
		return
	}
	if c.wants(num, pb.TypeFixed64) {
		n, err := pb.ReadFixed(c.in, 8)
		if c.take(n, err) {
			*p = math.Float64frombits(binary.LittleEndian.Uint64(c.in))
		}
	}
}

// value takes a length-delimited value that stands at field num.
func (c *codec) value(num int) ([]byte, bool) {
	if !c.wants(num, pb.TypeBytes) {
		return nil, false
	}
	v, n, err := pb.ReadBytes(c.in)
	return v, c.take(n+len(v), err)
}

func (c *codec) bytes(num int, p *[]byte) {
	if !c.decoding {
		if len(*p) > 0 {
			c.tag(num, pb.TypeBytes)
			c.out = pb.AppendBytes(c.out, *p)
		}
		return
	}
	if v, ok := c.value(num); ok {
		*p = append([]byte{}, v...)
	}
}

// putString writes even an empty string. What is not UTF-8 is made so, for a
// peer refuses the whole message otherwise, and the text of an error may name
// a path that holds anything.
func (c *codec) putString(num int, s string) {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	c.tag(num, pb.TypeBytes)
	c.out = pb.AppendBytes(c.out, s)
}

func (c *codec) getString(num int) (string, bool) {
	v, ok := c.value(num)
	if ok && !utf8.Valid(v) {
		c.err = errUTF8
		return "", false
	}
	return string(v), ok
}

func (c *codec) string(num int, p *string) {
	if !c.decoding {
		if *p != "" {
			c.putString(num, *p)
		}
		return
	}
	if s, ok := c.getString(num); ok {
		*p = s
	}
}

// optionalString tells an absent string (nil) from an empty one.
func (c *codec) optionalString(num int, p **string) {
	if !c.decoding {
		if *p != nil {
			c.putString(num, **p)
		}
		return
	}
	if s, ok := c.getString(num); ok {
		*p = &s
	}
}

func (c *codec) strings(num int, p *[]string) {
	if !c.decoding {
		for _, s := range *p {
			c.putString(num, s)
		}
		return
	}
	if s, ok := c.getString(num); ok {
		*p = append(*p, s)
	}
}

// uint64s is packed when written, as proto3 has it, and read packed or not.
func (c *codec) uint64s(num int, p *[]uint64) {
	if !c.decoding {
		if len(*p) > 0 {
			c.nested(num, func() {
				for _, v := range *p {
					c.out = binary.AppendUvarint(c.out, v)
				}
			})
		}
		return
	}
	c.varint(num, 0, func(v uint64) { *p = append(*p, v) })
	if packed, ok := c.value(num); ok {
		for len(packed) > 0 {
			v, n, err := pb.ReadVarint(packed)
			if err != nil {
				c.err = err
				return
			}
			*p = append(*p, v)
			packed = packed[n:]
		}
	}
}

// nested writes what body writes as one length-delimited value. The length is
// known only afterwards, so the body is moved up to make room for it.
func (c *codec) nested(num int, body func()) {
	c.tag(num, pb.TypeBytes)
	start := len(c.out)
	body()
	size := len(c.out) - start
	room := pb.VarintLen(uint64(size))
	c.out = append(c.out, make([]byte, room)...)
	copy(c.out[start+room:], c.out[start:start+size])
	binary.AppendUvarint(c.out[:start], uint64(size))
}

// stringMap is a map field: a repeated message of key 1 and value 2.
func (c *codec) stringMap(num int, p *map[string]string) {
	if !c.decoding {
		keys := make([]string, 0, len(*p))
		for k := range *p {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			c.nested(num, func() {
				c.putString(1, k)
				c.putString(2, (*p)[k])
			})
		}
		return
	}
	if v, ok := c.value(num); ok {
		var e mapEntry
		if c.err = Unmarshal(v, &e); c.err != nil {
			return
		}
		if *p == nil {
			*p = make(map[string]string)
		}
		(*p)[e.key] = e.value
	}
}

type mapEntry struct{ key, value string }

func (e *mapEntry) fields(c *codec) {
	c.string(1, &e.key)
	c.string(2, &e.value)
}

// pointer is a message type by its pointer, as the methods have it.
type pointer[T any] interface {
	*T
	Message
}

// message is a singular message field; nil is absent. Read twice, the second
// is merged into the first, as the encoding demands.
func message[T any, P pointer[T]](c *codec, num int, p **T) {
	if !c.decoding {
		if *p != nil {
			c.nested(num, func() { P(*p).fields(c) })
		}
		return
	}
	if v, ok := c.value(num); ok {
		if *p == nil {
			*p = new(T)
		}
		c.err = Unmarshal(v, P(*p))
	}
}

// messages is a repeated message field.
func messages[T any, P pointer[T]](c *codec, num int, p *[]*T) {
	if !c.decoding {
		for _, m := range *p {
			c.nested(num, func() { P(m).fields(c) })
		}
		return
	}
	if v, ok := c.value(num); ok {
		m := new(T)
		if c.err = Unmarshal(v, P(m)); c.err == nil {
			*p = append(*p, m)
		}
	}
}
