package systemd

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/berth-runtime/berth/internal/dbus"
)

const (
	busName          = "org.freedesktop.systemd1"
	managerPath      = dbus.ObjectPath("/org/freedesktop/systemd1")
	managerInterface = busName + ".Manager"
)

// DefaultTimeout bounds a call with its job where Options has no other.
const DefaultTimeout = 30 * time.Second

// Options say which systemd a Manager talks to.
type Options struct {
	// User is set for the systemd of the user instead of the system's.
	User bool
	// Address is a D-Bus server address to use instead of the usual places.
	Address string
	// Timeout bounds each call together with the job that it begins.
	Timeout time.Duration
}

// Manager talks to one systemd. It connects when it is first needed, keeps the
// connection, and makes a new one where that was lost. Its methods can be called
// from several goroutines.
type Manager struct {
	opts Options

	mu      sync.Mutex // guards what follows, and is held while connecting
	conn    *connection
	met     bool // there has been a connection
	version int
}

// New makes a Manager, without connecting.
func New(opts Options) *Manager {
	if opts.Timeout == 0 {
		opts.Timeout = DefaultTimeout
	}
	return &Manager{opts: opts}
}

// Close drops the connection, if there is one.
func (m *Manager) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn == nil {
		return nil
	}
	err := m.conn.Close()
	m.conn = nil
	return err
}

// connect gives the connection, a new one where there is none that lives. A systemd
// that has been there before and is not now is being executed anew (daemon-reexec), and
// is waited for.
func (m *Manager) connect(ctx context.Context) (*connection, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != nil && m.conn.Connected() {
		return m.conn, nil
	}
	if m.conn != nil {
		m.conn.Close()
		m.conn = nil
	}
	for p := (pause{}); ; {
		c, err := m.dial(ctx)
		if err == nil {
			m.conn, m.met = c, true
			return c, nil
		}
		if !m.met && !m.restarts(err) || !p.wait(ctx) {
			return nil, err
		}
	}
}

// restarts says whether a systemd that runs does not listen at its socket: it is being
// executed anew, which closes its own socket for a while.
func (m *Manager) restarts(err error) bool {
	return m.opts.Address == "" && errors.Is(err, syscall.ECONNREFUSED) && Booted()
}

// pause is the time between two tries, which doubles up to half a second.
type pause struct{ last time.Duration }

// wait reports false where the time is over.
func (p *pause) wait(ctx context.Context) bool {
	p.last = min(max(2*p.last, 10*time.Millisecond), 500*time.Millisecond)
	select {
	case <-time.After(p.last):
		return true
	case <-ctx.Done():
		return false
	}
}

// deadline puts the Manager's timeout on a context.
func (m *Manager) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, m.opts.Timeout)
}

// retry makes calls that may be made twice: where the connection is lost, as when the
// bus restarts, or systemd is executed anew, they are made again on a new one.
func (m *Manager) retry(ctx context.Context, calls func(context.Context, *connection) error) error {
	ctx, cancel := m.deadline(ctx)
	defer cancel()
	for p := (pause{}); ; {
		c, err := m.connect(ctx)
		if err != nil {
			return err
		}
		err = calls(ctx, c)
		if !isLost(err) {
			return err
		}
		// Whatever state it is in, it is of no more use.
		c.Close()
		if !p.wait(ctx) {
			return err
		}
	}
}

// isLost says whether an error means that the connection broke, so that it is
// not known whether the call was heard.
func isLost(err error) bool {
	var e *dbus.Error
	if errors.As(err, &e) {
		switch e.Name {
		case "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Disconnected",
			// The bus's words for a systemd that is being executed anew, which it would
			// start by its service file (Exec=/bin/false).
			"org.freedesktop.DBus.Error.NameHasNoOwner", "org.freedesktop.DBus.Error.ServiceUnknown",
			"org.freedesktop.DBus.Error.Spawn.ChildExited":
			return true
		}
		return false
	}
	return errors.Is(err, dbus.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, os.ErrClosed)
}

// Version is the version of systemd, asked once.
func (m *Manager) Version(ctx context.Context) (int, error) {
	m.mu.Lock()
	known := m.version
	m.mu.Unlock()
	if known != 0 {
		return known, nil
	}
	var text string
	err := m.retry(ctx, func(ctx context.Context, c *connection) error {
		return c.property(ctx, managerPath, managerInterface, "Version", &text)
	})
	n := 0
	if err == nil {
		n, err = parseVersion(text)
	}
	if err != nil {
		return 0, fail("ask for the version of systemd", "", err)
	}
	m.mu.Lock()
	m.version = n
	m.mu.Unlock()
	return n, nil
}

// unitPath is the object of a unit: every byte of the name that is no letter or
// digit becomes _ and two hexadecimal digits, and so does a digit at its start
// (bus_label_escape of systemd).
func unitPath(name string) dbus.ObjectPath {
	const hex = "0123456789abcdef"
	b := []byte(managerPath + "/unit/")
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9' {
			b = append(b, c)
		} else {
			b = append(b, '_', hex[c>>4], hex[c&15])
		}
	}
	return dbus.ObjectPath(b)
}
