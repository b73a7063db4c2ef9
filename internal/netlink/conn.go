package netlink

import (
	"encoding/binary"
	"fmt"
	"os"

	"github.com/berth-runtime/berth/internal/sys"
	"golang.org/x/sys/unix"
)

// Conn is a netlink socket in one network namespace.
type Conn struct {
	fd  int
	seq uint32
}

// Open opens a socket in our own network namespace.
func Open() (*Conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	return &Conn{fd: fd}, nil
}

// OpenIn opens a socket in the network namespace of a descriptor.
func OpenIn(netns int) (conn *Conn, err error) {
	sys.OnThrowawayThread(func() {
		if err = unix.Setns(netns, unix.CLONE_NEWNET); err != nil {
			err = fmt.Errorf("enter the network namespace: %w", err)
			return
		}
		conn, err = Open()
	})
	return conn, err
}

// Close closes the socket.
func (c *Conn) Close() { unix.Close(c.fd) }

var native = binary.NativeEndian

// request begins a message of a kind.
func request(kind, flags uint16) []byte {
	b := make([]byte, unix.SizeofNlMsghdr, 256)
	native.PutUint16(b[4:], kind)
	native.PutUint16(b[6:], unix.NLM_F_REQUEST|flags)
	return b
}

// attribute appends an attribute (struct rtattr), padded to four bytes.
func attribute(b []byte, kind uint16, value []byte) []byte {
	b = native.AppendUint16(b, uint16(unix.SizeofRtAttr+len(value)))
	b = native.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, -len(b)&3)...)
}

// exchange sends a request and gives each answer to visit.
func (c *Conn) exchange(b []byte, visit func(kind uint16, body []byte)) error {
	c.seq++
	native.PutUint32(b, uint32(len(b)))
	native.PutUint32(b[8:], c.seq)
	if err := unix.Sendto(c.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("sendto", err)
	}
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(c.fd, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("recvfrom", err)
		}
		done, err := c.answers(buf[:n], visit)
		if done || err != nil {
			return err
		}
	}
}

// answers walks the messages of one datagram.
func (c *Conn) answers(b []byte, visit func(kind uint16, body []byte)) (done bool, err error) {
	for len(b) >= unix.SizeofNlMsghdr {
		size := int(native.Uint32(b))
		if size < unix.SizeofNlMsghdr || size > len(b) {
			return false, fmt.Errorf("netlink message of %d bytes in a datagram of %d", size, len(b))
		}
		kind, flags, seq, body := native.Uint16(b[4:]), native.Uint16(b[6:]), native.Uint32(b[8:]), b[unix.SizeofNlMsghdr:size]
		b = b[min(len(b), (size+3)&^3):]
		if seq != c.seq {
			continue // an answer to an earlier request that was given up
		}
		switch kind {
		case unix.NLMSG_DONE:
			return true, nil
		case unix.NLMSG_ERROR:
			if len(body) < 4 {
				return false, fmt.Errorf("netlink error of %d bytes", len(body))
			}
			if errno := -int32(native.Uint32(body)); errno != 0 {
				return true, unix.Errno(errno)
			}
			return true, nil
		}
		if visit != nil {
			visit(kind, body)
		}
		if flags&unix.NLM_F_MULTI == 0 {
			return true, nil
		}
	}
	return false, nil
}

// attributes walks the attributes of a message's body.
func attributes(b []byte, visit func(kind uint16, value []byte)) {
	for len(b) >= unix.SizeofRtAttr {
		size := int(native.Uint16(b))
		if size < unix.SizeofRtAttr || size > len(b) {
			return
		}
		visit(native.Uint16(b[2:])&^unix.NLA_F_NESTED, b[unix.SizeofRtAttr:size])
		b = b[min(len(b), (size+3)&^3):]
	}
}
