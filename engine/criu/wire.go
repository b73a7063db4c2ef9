package criu

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/berth-runtime/berth/internal/pb"
)

// message is one being written, field by field. Fields with a zero value are
// left out, unless their method says that they are required.
type message struct{ data []byte }

func (m *message) tag(field, wire int) {
	m.data = pb.AppendTag(m.data, field, wire)
}

func (m *message) requiredInt(field int, v int64) {
	m.tag(field, pb.TypeVarint)
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
	m.tag(field, pb.TypeBytes)
	m.data = pb.AppendBytes(m.data, v)
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

var errMessage = errors.New("criu's answer is not a message of its protocol")

// field is one that was read: a number, or the bytes of a string or message.
type field struct {
	number int
	value  uint64
	bytes  []byte
}

// fields reads a message and gives each field to take.
func fields(data []byte, take func(field) error) error {
	for len(data) > 0 {
		number, kind, n, err := pb.ReadTag(data)
		if err != nil {
			return fmt.Errorf("%w: %w", errMessage, err)
		}
		data = data[n:]
		f := field{number: number}
		switch kind {
		case pb.TypeVarint:
			f.value, n, err = pb.ReadVarint(data)
		case pb.TypeBytes:
			f.bytes, n, err = pb.ReadBytes(data)
			n += len(f.bytes)
		default:
			n, err = pb.Skip(data, number, kind)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errMessage, err)
		}
		data = data[n:]
		if err := take(f); err != nil {
			return err
		}
	}
	return nil
}
