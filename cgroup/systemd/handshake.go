package systemd

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// stream is a connection on which we have said who we are.
//
// The whole handshake goes out at once, as systemd's own library does it, and
// nothing more until the answer is there. godbus sends the end of it and its
// first message apart, and where systemd's private socket reads those two in one
// go, it leaves the message alone until something else comes, which is never. So
// godbus is told of a handshake that has taken place. EXTERNAL names no user, so
// that the other side goes by the credentials of the socket: inside a user
// namespace our uid is another than the one that we see.
type stream struct {
	net.Conn
	in      *bufio.Reader // messages are read in bits of a few bytes
	told    *strings.Reader
	silence bool // what godbus says is not sent on
}

const handshakeEnd = "BEGIN\r\n"

func newStream(conn net.Conn) (*stream, error) {
	if _, err := io.WriteString(conn, "\x00AUTH EXTERNAL\r\nDATA\r\n"+handshakeEnd); err != nil {
		return nil, err
	}
	s := &stream{Conn: conn, in: bufio.NewReader(conn), silence: true}
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("say who we are: %w", err)
		}
		switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "DATA":
		case "OK":
			s.told = strings.NewReader("REJECTED EXTERNAL\r\nOK " + rest + "\r\n")
			return s, nil
		default:
			return nil, errors.New("say who we are: the answer is " + strings.TrimSpace(line))
		}
	}
}

func (s *stream) Read(b []byte) (int, error) {
	if s.told.Len() > 0 {
		return s.told.Read(b)
	}
	return s.in.Read(b)
}

func (s *stream) Write(b []byte) (int, error) {
	if !s.silence {
		return s.Conn.Write(b)
	}
	s.silence = !bytes.HasSuffix(b, []byte(handshakeEnd))
	return len(b), nil
}
