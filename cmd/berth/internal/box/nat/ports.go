package nat

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Port of the box is reached by one of the host's.
type Port struct {
	Address   string // of the host, "" for all
	Host, Box uint16
	UDP       bool
}

// ParsePort reads [ADDRESS:]HOSTPORT:PORT[/tcp|/udp].
func ParsePort(text string) (Port, error) {
	wrong := fmt.Errorf("%q is not [ADDRESS:]HOSTPORT:PORT[/udp], such as 8080:80 or 127.0.0.1:8080:80", text)
	ports, protocol, _ := strings.Cut(text, "/")
	p := Port{UDP: protocol == "udp"}
	if protocol != "" && protocol != "tcp" && !p.UDP {
		return p, wrong
	}
	rest, inner, ok := cutLast(ports)
	if !ok {
		return p, fmt.Errorf("%q: say which port of the host: HOSTPORT:%s", text, ports)
	}
	address, outer, given := cutLast(rest)
	if !given {
		outer = rest
	} else {
		if !isIPv4(address) {
			return p, fmt.Errorf("%q: %q is not an IPv4 address of this host", text, address)
		}
		p.Address = address
	}
	host, err1 := strconv.ParseUint(outer, 10, 16)
	box, err2 := strconv.ParseUint(inner, 10, 16)
	if err1 != nil || err2 != nil || host == 0 || box == 0 {
		return p, wrong
	}
	p.Host, p.Box = uint16(host), uint16(box)
	return p, nil
}

func (p *Port) String() string {
	address, protocol := p.Address, ""
	if address == "" {
		address = "0.0.0.0"
	}
	if p.UDP {
		protocol = "/udp"
	}
	return fmt.Sprintf("%s:%d to %d%s", address, p.Host, p.Box, protocol)
}

// free finds out whether a port can be had: pasta is content with one of several addresses.
func (p *Port) free() error {
	kind := unix.SOCK_STREAM
	if p.UDP {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	address := unix.SockaddrInet4{Port: int(p.Host)}
	for i, part := range strings.Split(p.Address, ".") {
		if n, err := strconv.ParseUint(part, 10, 8); err == nil {
			address.Addr[i] = byte(n)
		}
	}
	if !p.UDP { // what was closed a moment ago is no hindrance
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	switch err := unix.Bind(fd, &address); err {
	case nil:
		return nil
	case unix.EADDRINUSE:
		return fmt.Errorf("port %d of this host is in use", p.Host)
	case unix.EACCES:
		return fmt.Errorf("port %d of this host: those below %s are root's (sysctl net.ipv4.ip_unprivileged_port_start)", p.Host, firstPort())
	default:
		return fmt.Errorf("port %d of this host: %w", p.Host, err)
	}
}

func firstPort() string {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	if err != nil {
		return "1024"
	}
	return strings.TrimSpace(string(text))
}

func isIPv4(text string) bool {
	parts := strings.Split(text, ".")
	for _, part := range parts {
		if n, err := strconv.ParseUint(part, 10, 8); err != nil || strconv.FormatUint(n, 10) != part {
			return false
		}
	}
	return len(parts) == 4
}

func cutLast(text string) (before, after string, ok bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}
