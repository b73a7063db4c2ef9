package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/internal/dbus"
	"golang.org/x/sys/unix"
)

// socket is a way to reach a systemd.
type socket struct {
	path string // with a leading @ for an abstract one
	// private is systemd's own socket, where it talks D-Bus without a bus in
	// between: no Hello, no names, no match rules, and no limit on the
	// connections of a user, which for the system bus is 256.
	private bool
}

// sockets are the ways in the order in which they are tried.
func (m *Manager) sockets() []socket {
	if m.opts.Address != "" {
		return busSockets(m.opts.Address)
	}
	// The bus comes first, though it is one hop more: for each connection to its own socket systemd
	// sets up all of its objects, and takes them down again, and sends it every signal there is.
	if !m.opts.User {
		bus := os.Getenv("DBUS_SYSTEM_BUS_ADDRESS")
		if bus == "" {
			bus = "unix:path=/run/dbus/system_bus_socket"
		}
		all := busSockets(bus)
		if os.Geteuid() == 0 {
			all = append(all, socket{path: "/run/systemd/private", private: true})
		}
		return all
	}
	runtime := os.Getenv("XDG_RUNTIME_DIR")
	bus := os.Getenv("DBUS_SESSION_BUS_ADDRESS")
	if bus == "" && runtime != "" {
		bus = "unix:path=" + runtime + "/bus"
	}
	all := busSockets(bus)
	if runtime != "" {
		all = append(all, socket{path: runtime + "/systemd/private", private: true})
	}
	return all
}

// busSockets reads a D-Bus server address, of which unix sockets are of use:
// "unix:path=/run/user/1000/bus,guid=…;unix:abstract=…".
func busSockets(address string) []socket {
	var all []socket
	for one := range strings.SplitSeq(address, ";") {
		keys, ok := strings.CutPrefix(one, "unix:")
		if !ok {
			continue
		}
		s := socket{}
		for pair := range strings.SplitSeq(keys, ",") {
			key, value, _ := strings.Cut(pair, "=")
			value, ok := unescape(value)
			switch {
			case !ok:
			case key == "path":
				s.path = value
			case key == "abstract":
				s.path = "@" + value
			}
		}
		if s.path != "" {
			all = append(all, s)
		}
	}
	return all
}

// unescape undoes the %XX of server addresses. (net/url brings net/netip with it,
// which takes its time at the start of every program.)
func unescape(value string) (string, bool) {
	var plain []byte
	for {
		before, after, found := strings.Cut(value, "%")
		plain = append(plain, before...)
		if !found {
			return string(plain), true
		}
		if len(after) < 2 {
			return "", false
		}
		n, err := strconv.ParseUint(after[:2], 16, 8)
		if err != nil {
			return "", false
		}
		plain, value = append(plain, byte(n)), after[2:]
	}
}

// dial connects to the first socket that answers.
func (m *Manager) dial(ctx context.Context) (*connection, error) {
	sockets := m.sockets()
	if len(sockets) == 0 {
		return nil, &Error{Op: "connect to systemd", Err: errors.New("no bus is known"),
			Hint: "set XDG_RUNTIME_DIR or DBUS_SESSION_BUS_ADDRESS; a user without a session needs loginctl enable-linger"}
	}
	var errs []error
	for i, s := range sockets {
		c, err := m.dialSocket(ctx, s, i < len(sockets)-1)
		if err == nil {
			return c, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", s.path, err))
		if ctx.Err() != nil {
			break
		}
	}
	e := &Error{Op: "connect to systemd", Err: errors.Join(errs...)}
	if errors.Is(e, os.ErrNotExist) || errors.Is(e, unix.ECONNREFUSED) {
		e.Hint = "is systemd running here? without it, use the cgroupfs driver"
	}
	return nil, e
}

// dialSocket connects to one of the sockets. Where there is another to try, it takes a part of the
// time and no more: a bus that hangs leaves the way by systemd's own socket.
func (m *Manager) dialSocket(ctx context.Context, s socket, another bool) (*connection, error) {
	if another {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.opts.Timeout/4)
		defer cancel()
	}
	c := &connection{private: s.private, waiting: map[string][]*jobWaiter{}}
	var err error
	if c.Conn, err = dbus.Dial(ctx, s.path, c); err != nil {
		return nil, err
	}
	if !s.private {
		_, err = c.Call(ctx, busCall("Hello", ""))
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// parseVersion reads what systemd says of itself: "257.4-1", "v249", "systemd 245".
func parseVersion(s string) (int, error) {
	digits := strings.TrimLeftFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		digits = digits[:end]
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0, fmt.Errorf("systemd's version %q has no number", s)
	}
	return n, nil
}
