package ttrpc

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

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

// frameReader takes messages from a connection. It keeps what it has read of one that is not whole
// when an error, such as a deadline, stops it, and goes on from there.
type frameReader struct {
	from io.Reader
	buf  []byte // has been read, and not been given out
	// over is an oversized message, of which skip bytes are to be dropped.
	over header
	skip uint64
	kept *inbox // where buf is, with a keeper
}

// readSize is how much room there is for a read at least.
const readSize = 1024

func newFrameReader(from io.Reader) *frameReader { return &frameReader{from: from} }

func (f *frameReader) next() (header, []byte, error) {
	for {
		if f.over.length > 0 {
			n := min(uint64(len(f.buf)), f.skip)
			f.buf, f.skip = f.buf[n:], f.skip-n
			if f.skip == 0 {
				h := f.over
				f.over = header{}
				return h, nil, errOversized{h.length}
			}
		} else if len(f.buf) >= headerSize {
			h := parseHeader(f.buf)
			if h.length > maxMessage {
				f.over, f.skip, f.buf = h, uint64(h.length), f.buf[headerSize:]
				continue
			}
			if end := headerSize + int(h.length); len(f.buf) >= end {
				body := append([]byte{}, f.buf[headerSize:end]...)
				f.buf = f.buf[end:]
				return h, body, nil
			}
		}
		if err := f.fill(); err != nil {
			return header{}, nil, err
		}
	}
}

// dropped is to be called when something has been done about an oversized message.
func (f *frameReader) dropped() error {
	if f.kept == nil {
		return nil
	}
	return f.kept.move(f.kept.last(), f)
}

// position is how much has come before what is to be given out next. It is known with a keeper.
func (f *frameReader) position() uint64 {
	if f.kept == nil {
		return 0
	}
	return f.kept.position(len(f.buf))
}

// want is how much room the next read is to have.
func (f *frameReader) want() int {
	if f.over.length == 0 && len(f.buf) >= headerSize {
		return max(readSize, headerSize+int(parseHeader(f.buf).length)-len(f.buf))
	}
	return readSize
}

// fill reads more. A message that is not whole is an io.ErrUnexpectedEOF at the end.
func (f *frameReader) fill() error {
	have, want := len(f.buf), f.want()
	if f.kept != nil {
		err := f.kept.fill(f)
		if err == io.EOF && (have > 0 || f.over.length > 0) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	switch {
	case cap(f.buf)-have < want:
		f.buf = append(make([]byte, 0, have+want), f.buf...)
	case have == 0:
		f.buf = f.buf[:0]
	}
	n, err := f.from.Read(f.buf[have : have+want])
	f.buf = f.buf[:have+max(n, 0)]
	switch {
	case n > 0:
		return nil // an error comes again
	case err == io.EOF && (have > 0 || f.over.length > 0):
		return io.ErrUnexpectedEOF
	case err == nil:
		return io.ErrNoProgress
	}
	return err
}

func parseHeader(raw []byte) header {
	return header{
		length: binary.BigEndian.Uint32(raw[0:]),
		stream: binary.BigEndian.Uint32(raw[4:]),
		kind:   raw[8],
		flags:  raw[9],
	}
}

// frame is header and message in one piece, for one write.
func frame(stream uint32, kind, flags uint8, m wire.Message) ([]byte, error) {
	body := wire.Marshal(m)
	if len(body) > maxMessage {
		return nil, errOversized{uint32(min(uint64(len(body)), math.MaxUint32))}
	}
	b := make([]byte, headerSize, headerSize+len(body))
	binary.BigEndian.PutUint32(b[0:], uint32(len(body)))
	binary.BigEndian.PutUint32(b[4:], stream)
	b[8], b[9] = kind, flags
	return append(b, body...), nil
}
