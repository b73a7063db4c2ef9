package netlink

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// A Link is a network device.
type Link struct {
	Index int32
	Name  string
	Up    bool
}

// LinkByName finds a device; the error is ENODEV where there is none.
func (c *Conn) LinkByName(name string) (Link, error) {
	b := append(request(unix.RTM_GETLINK, 0), make([]byte, unix.SizeofIfInfomsg)...)
	b = attribute(b, unix.IFLA_IFNAME, append([]byte(name), 0))
	var link Link
	err := c.exchange(b, func(kind uint16, body []byte) {
		if kind == unix.RTM_NEWLINK {
			link = parseLink(body)
		}
	})
	return link, err
}

// Links lists the devices of the namespace.
func (c *Conn) Links() ([]Link, error) {
	var links []Link
	b := append(request(unix.RTM_GETLINK, unix.NLM_F_DUMP), make([]byte, unix.SizeofIfInfomsg)...)
	err := c.exchange(b, func(kind uint16, body []byte) {
		if kind == unix.RTM_NEWLINK {
			links = append(links, parseLink(body))
		}
	})
	return links, err
}

func parseLink(body []byte) Link {
	if len(body) < unix.SizeofIfInfomsg {
		return Link{}
	}
	l := Link{Index: int32(native.Uint32(body[4:])), Up: native.Uint32(body[8:])&unix.IFF_UP != 0}
	attributes(body[unix.SizeofIfInfomsg:], func(kind uint16, value []byte) {
		if kind == unix.IFLA_IFNAME {
			l.Name = string(bytes.TrimRight(value, "\x00"))
		}
	})
	return l
}

// Move puts a device into another network namespace under a name, in which the
// kernel replaces %d by a number. Both happen at once or not at all.
func (c *Conn) Move(index int32, netns int, name string) error {
	b := append(request(unix.RTM_NEWLINK, unix.NLM_F_ACK), linkInfo(index, 0, 0)...)
	b = attribute(b, unix.IFLA_NET_NS_FD, native.AppendUint32(nil, uint32(netns)))
	b = attribute(b, unix.IFLA_IFNAME, append([]byte(name), 0))
	return c.exchange(b, nil)
}

// SetUp brings a device up or down.
func (c *Conn) SetUp(index int32, up bool) error {
	var flags uint32
	if up {
		flags = unix.IFF_UP
	}
	return c.exchange(append(request(unix.RTM_NEWLINK, unix.NLM_F_ACK), linkInfo(index, flags, unix.IFF_UP)...), nil)
}

// linkInfo is a struct ifinfomsg: family, type, index, flags, which of them change.
func linkInfo(index int32, flags, change uint32) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	native.PutUint32(b[4:], uint32(index))
	native.PutUint32(b[8:], flags)
	native.PutUint32(b[12:], change)
	return b
}

// An Address is one of a device, kept as the kernel told it.
type Address struct {
	header [unix.SizeofIfAddrmsg]byte
	attrs  []byte
}

// Permanent reports whether the address is meant to last and for the world:
// IFA_F_PERMANENT, and the scope RT_SCOPE_UNIVERSE.
func (a *Address) Permanent() bool {
	flags := uint32(a.header[2])
	attributes(a.attrs, func(kind uint16, value []byte) {
		if kind == unix.IFA_FLAGS && len(value) >= 4 {
			flags = native.Uint32(value)
		}
	})
	return flags&unix.IFA_F_PERMANENT != 0 && a.header[3] == unix.RT_SCOPE_UNIVERSE
}

// Addresses lists the addresses of a device, of all families.
func (c *Conn) Addresses(index int32) ([]Address, error) {
	var list []Address
	b := append(request(unix.RTM_GETADDR, unix.NLM_F_DUMP), make([]byte, unix.SizeofIfAddrmsg)...)
	err := c.exchange(b, func(kind uint16, body []byte) {
		if kind != unix.RTM_NEWADDR || len(body) < unix.SizeofIfAddrmsg || int32(native.Uint32(body[4:])) != index {
			return
		}
		a := Address{attrs: bytes.Clone(body[unix.SizeofIfAddrmsg:])}
		copy(a.header[:], body)
		list = append(list, a)
	})
	return list, err
}

// AddAddress gives a device an address that one had in another namespace.
func (c *Conn) AddAddress(index int32, a Address) error {
	b := request(unix.RTM_NEWADDR, unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	header := a.header
	native.PutUint32(header[4:], uint32(index))
	b = append(b, header[:]...)
	attributes(a.attrs, func(kind uint16, value []byte) {
		switch kind {
		case unix.IFA_CACHEINFO, unix.IFA_LABEL:
			// Times that began elsewhere, and a label that begins with the old name.
		default:
			b = attribute(b, kind, value)
		}
	})
	return c.exchange(b, nil)
}
