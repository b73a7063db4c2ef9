package dbus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Kinds of messages.
const (
	kindCall   = 1
	kindReturn = 2
	kindError  = 3
	kindSignal = 4
)

const (
	flagNoReply = 1
	version     = 1
	fixedHeader = 16 // with the length of the fields
	// maxMessage is the specification's.
	maxMessage = 128 << 20
)

// Header fields.
const (
	fieldPath = iota + 1
	fieldInterface
	fieldMember
	fieldErrorName
	fieldReplySerial
	fieldDestination
	fieldSender
	fieldSignature
)

// message is one of any kind.
type message struct {
	kind, flags     byte
	serial, reply   uint32
	path            ObjectPath
	iface, member   string
	errorName, dest string
	signature       Signature
	body            []any
}

// encode renders a message in little endian.
func (m *message) encode() ([]byte, error) {
	body, err := Encode(nil, m.signature, m.body)
	if err != nil {
		return nil, err
	}
	var fields []any
	field := func(code byte, s Signature, v any) {
		fields = append(fields, []any{code, Variant{s, v}})
	}
	if m.path != "" {
		field(fieldPath, "o", m.path)
	}
	for _, f := range [...]struct {
		code byte
		text string
	}{{fieldInterface, m.iface}, {fieldMember, m.member}, {fieldErrorName, m.errorName}, {fieldDestination, m.dest}} {
		if f.text != "" {
			field(f.code, "s", f.text)
		}
	}
	if m.reply != 0 {
		field(fieldReplySerial, "u", m.reply)
	}
	if m.signature != "" {
		field(fieldSignature, "g", m.signature)
	}
	text, err := Encode(make([]byte, 0, 256+len(body)), "yyyyuua(yv)",
		[]any{byte('l'), m.kind, m.flags, byte(version), uint32(len(body)), m.serial, fields})
	if err != nil {
		return nil, err
	}
	for len(text)%8 != 0 {
		text = append(text, 0)
	}
	if len(text)+len(body) > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes, where %d are allowed", len(text)+len(body), maxMessage)
	}
	return append(text, body...), nil
}

// readMessage reads one message. A read that ends before it begins is io.EOF.
func readMessage(in io.Reader) (*message, error) {
	var fixed [fixedHeader]byte
	if _, err := io.ReadFull(in, fixed[:]); err != nil {
		return nil, err
	}
	order, err := orderOf(fixed[0])
	if err != nil {
		return nil, err
	}
	if fixed[3] != version {
		return nil, fmt.Errorf("a message of version %d", fixed[3])
	}
	body, fields := uint64(order.Uint32(fixed[4:])), uint64(order.Uint32(fixed[12:]))
	padded := (fixedHeader + fields + 7) &^ 7
	if padded+body > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes, where %d are allowed", padded+body, maxMessage)
	}
	text, err := readAll(in, fixed[:], int(padded+body))
	if err != nil {
		return nil, err
	}
	return decodeMessage(text, order, int(fields), int(padded))
}

// readAll grows with what comes, not with what was announced.
func readAll(in io.Reader, begin []byte, size int) ([]byte, error) {
	text := append(make([]byte, 0, min(size, 4096)), begin...)
	for len(text) < size {
		from := len(text)
		text = append(text, make([]byte, min(size-from, max(from, 4096)))...)
		if _, err := io.ReadFull(in, text[from:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return text, nil
}

func orderOf(c byte) (binary.ByteOrder, error) {
	switch c {
	case 'l':
		return binary.LittleEndian, nil
	case 'B':
		return binary.BigEndian, nil
	}
	return nil, fmt.Errorf("a message begins with %q, which is not a byte order", c)
}

func decodeMessage(text []byte, order binary.ByteOrder, fields, padded int) (*message, error) {
	head, err := Decode(text[:fixedHeader+fields], order, "yyyyuua(yv)")
	if err != nil {
		return nil, fmt.Errorf("the header of a message: %w", err)
	}
	m := &message{kind: head[1].(byte), flags: head[2].(byte), serial: head[5].(uint32)}
	for _, f := range head[6].([]any) {
		pair := f.([]any)
		if err := m.setField(pair[0].(byte), pair[1].(Variant)); err != nil {
			return nil, err
		}
	}
	if (m.kind == kindReturn || m.kind == kindError) && m.reply == 0 {
		return nil, errors.New("an answer does not say to what")
	}
	if m.body, err = Decode(text[padded:], order, m.signature); err != nil {
		return nil, err
	}
	return m, nil
}

// setField takes over what is of use, and leaves alone what it does not know.
func (m *message) setField(code byte, v Variant) error {
	ok := true
	switch code {
	case fieldPath:
		m.path, ok = v.Value.(ObjectPath)
	case fieldInterface:
		m.iface, ok = v.Value.(string)
	case fieldMember:
		m.member, ok = v.Value.(string)
	case fieldErrorName:
		m.errorName, ok = v.Value.(string)
	case fieldReplySerial:
		m.reply, ok = v.Value.(uint32)
	case fieldSignature:
		m.signature, ok = v.Value.(Signature)
	}
	if !ok {
		return fmt.Errorf("field %d of a message has the type %q", code, string(v.Type))
	}
	return nil
}
