package systemd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
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
	if !m.opts.User {
		bus := os.Getenv("DBUS_SYSTEM_BUS_ADDRESS")
		if bus == "" {
			bus = "unix:path=/run/dbus/system_bus_socket"
		}
		all := busSockets(bus)
		if os.Geteuid() == 0 {
			all = append([]socket{{path: "/run/systemd/private", private: true}}, all...)
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
			value, err := url.PathUnescape(value)
			switch {
			case err != nil:
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

// dial connects to the first socket that answers.
func (m *Manager) dial(ctx context.Context) (*connection, error) {
	sockets := m.sockets()
	if len(sockets) == 0 {
		return nil, &Error{Op: "connect to systemd", Err: errors.New("no bus is known"),
			Hint: "set XDG_RUNTIME_DIR or DBUS_SESSION_BUS_ADDRESS; a user without a session needs loginctl enable-linger"}
	}
	var errs []error
	for _, s := range sockets {
		c, err := dialSocket(ctx, s)
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

func dialSocket(ctx context.Context, s socket) (*connection, error) {
	conn, err := connectUnix(ctx, s.path)
	if err != nil {
		return nil, err
	}
	// The handshake knows no context, so the stream gets its end.
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	c := &connection{private: s.private, waiting: map[string][]*jobWaiter{}}
	stream, err := newStream(conn)
	if err == nil {
		c.Conn, err = dbus.NewConn(stream, dbus.WithSignalHandler(c))
	}
	if err != nil {
		stop()
		conn.Close()
		if ctx.Err() != nil {
			err = ctx.Err() // which came over the stream as a timeout
		}
		return nil, err
	}
	err = c.Auth(nil)
	if err == nil && !s.private {
		err = c.Hello()
	}
	if stop() {
		conn.SetDeadline(time.Time{})
	}
	if err == nil && !s.private {
		// systemd sends its signals to a bus only while somebody wants them.
		err = c.manager().CallWithContext(ctx, managerInterface+".Subscribe", 0).Err
	}
	if err != nil {
		c.Close()
		if ctx.Err() != nil {
			err = ctx.Err() // which came over the stream as a timeout
		}
		return nil, err
	}
	return c, nil
}

// connectUnix connects with a blocking socket: where the backlog is full, as
// when a hundred containers start at once, a non-blocking one fails with EAGAIN
// and nothing says when to try again, but a blocking one waits.
func connectUnix(ctx context.Context, path string) (*net.UnixConn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close() // FileConn makes its own descriptor
	if deadline, ok := ctx.Deadline(); ok {
		tv := unix.NsecToTimeval(max(int64(time.Until(deadline)), int64(time.Millisecond)))
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv); err != nil {
			return nil, os.NewSyscallError("setsockopt", err)
		}
	}
	for {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EAGAIN) {
		err = context.DeadlineExceeded
	}
	if err != nil {
		return nil, os.NewSyscallError("connect", err)
	}
	stream, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return stream.(*net.UnixConn), nil
}

// OwnerUID is the uid that the bus knows us by, which inside a user namespace is
// not the one that we see. The user's units are below user-UID.slice.
func (m *Manager) OwnerUID(ctx context.Context) (int, error) {
	var uid uint32
	err := m.retry(ctx, func(ctx context.Context, c *connection) error {
		if c.private {
			return errors.New("systemd's own socket does not say who we are")
		}
		name := c.Names()
		if len(name) == 0 {
			return errors.New("the bus gave us no name")
		}
		return c.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.GetConnectionUnixUser", 0, name[0]).Store(&uid)
	})
	if err != nil {
		return 0, fail("ask the bus for our uid", "", err)
	}
	return int(uid), nil
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
