package ttrpc

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

const (
	headerSize = 10
	// maxMessage is the most that a frame may carry in ttrpc.
	maxMessage = 4 << 20

	typeRequest  = 1
	typeResponse = 2
	typeData     = 3

	flagRemoteClosed = 1
	flagRemoteOpen   = 2
	flagNoData       = 4
)

// header is what stands before the bytes of each message.
type header struct {
	length uint32
	stream uint32
	kind   uint8
	flags  uint8
}

// errOversized is a frame that is longer than ttrpc allows. Its bytes have been
// read and dropped, so that the connection can go on.
type errOversized struct{ length uint32 }

func (e errOversized) Error() string {
	return fmt.Sprintf("message of %d bytes exceeds the %d that ttrpc allows", e.length, maxMessage)
}

func readFrame(r io.Reader) (header, []byte, error) {
	var raw [headerSize]byte
	if _, err := io.ReadFull(r, raw[:]); err != nil {
		return header{}, nil, err
	}
	h := header{
		length: binary.BigEndian.Uint32(raw[0:]),
		stream: binary.BigEndian.Uint32(raw[4:]),
		kind:   raw[8],
		flags:  raw[9],
	}
	if h.length > maxMessage {
		if _, err := io.CopyN(io.Discard, r, int64(h.length)); err != nil {
			return h, nil, err
		}
		return h, nil, errOversized{h.length}
	}
	body := make([]byte, h.length)
	if _, err := io.ReadFull(r, body); err != nil {
		return h, nil, fmt.Errorf("read a message of %d bytes: %w", h.length, err)
	}
	return h, body, nil
}

// frame is header and message in one piece, for one write.
func frame(stream uint32, kind, flags uint8, m wire.Message) ([]byte, error) {
	body := wire.Marshal(m)
	if len(body) > maxMessage {
		return nil, errOversized{uint32(min(len(body), 1<<32-1))}
	}
	b := make([]byte, headerSize, headerSize+len(body))
	binary.BigEndian.PutUint32(b[0:], uint32(len(body)))
	binary.BigEndian.PutUint32(b[4:], stream)
	b[8], b[9] = kind, flags
	return append(b, body...), nil
}
