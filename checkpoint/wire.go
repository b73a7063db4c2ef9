package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Wire types of the protocol buffer encoding.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// message is one being written, field by field. Fields with a zero value are
// left out, unless their method says that they are required.
type message struct{ data []byte }

func (m *message) tag(field, wire int) {
	m.data = binary.AppendUvarint(m.data, uint64(field)<<3|uint64(wire))
}

func (m *message) requiredInt(field int, v int64) {
	m.tag(field, wireVarint)
	m.data = binary.AppendUvarint(m.data, uint64(v)) // a negative int32 takes ten bytes, as if it were an int64
}

func (m *message) int(field int, v int64) {
	if v != 0 {
		m.requiredInt(field, v)
	}
}

func (m *message) bool(field int, v bool) {
	if v {
		m.requiredInt(field, 1)
	}
}

func (m *message) requiredString(field int, v string) {
	m.tag(field, wireBytes)
	m.data = binary.AppendUvarint(m.data, uint64(len(v)))
	m.data = append(m.data, v...)
}

func (m *message) string(field int, v string) {
	if v != "" {
		m.requiredString(field, v)
	}
}

// inner writes a message within the message.
func (m *message) inner(field int, fill func(*message)) {
	var in message
	fill(&in)
	m.requiredString(field, string(in.data))
}

var errMessage = errors.New("criu's answer is no message of its protocol")

// field is one that was read: a number, or the bytes of a string or message.
type field struct {
	number int
	value  uint64
	bytes  []byte
}

// fields reads a message and gives each field to take.
func fields(data []byte, take func(field) error) error {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 || tag>>3 == 0 || tag>>3 >= 1<<29 {
			return errMessage
		}
		data = data[n:]
		f := field{number: int(tag >> 3)}
		switch tag & 7 {
		case wireVarint:
			if f.value, n = binary.Uvarint(data); n <= 0 {
				return errMessage
			}
		case wireBytes:
			size, prefix := binary.Uvarint(data)
			if prefix <= 0 || size > uint64(len(data)-prefix) {
				return errMessage
			}
			n = prefix + int(size)
			f.bytes = data[prefix:n]
		case wireFixed64:
			n = 8
		case wireFixed32:
			n = 4
		default:
			return fmt.Errorf("%w: wire type %d", errMessage, tag&7)
		}
		if n > len(data) {
			return errMessage
		}
		data = data[n:]
		if err := take(f); err != nil {
			return err
		}
	}
	return nil
}
