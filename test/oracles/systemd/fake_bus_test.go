package systemd_test

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
)

// fakeClient is a connection to the fake, which is bus and systemd in one.
type fakeClient struct {
	fake *fakeSystemd
	conn net.Conn

	mu      sync.Mutex
	ready   bool // the handshake is over
	hello   bool
	matches []string
	wants   bool // Subscribe was called
}

// serve lets the fake answer on a socket, and gives its address.
func (f *fakeSystemd) serve(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bus")
	f.serveAt(t, path)
	return "unix:path=" + path
}

func (f *fakeSystemd) serveAt(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var clients sync.WaitGroup
		defer clients.Wait()
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c := &fakeClient{fake: f, conn: conn}
			f.mu.Lock()
			f.clients = append(f.clients, c)
			f.mu.Unlock()
			clients.Go(func() { c.serve(t) })
		}
	}()
	t.Cleanup(func() {
		l.Close()
		f.mu.Lock()
		for _, c := range f.clients {
			c.conn.Close()
		}
		f.mu.Unlock()
		<-done
	})
}

// handshake is the server's side of SASL. It wants EXTERNAL without a name.
func (c *fakeClient) handshake(t *testing.T, in *bufio.Reader) bool {
	say := func(s string) bool { _, err := io.WriteString(c.conn, s+"\r\n"); return err == nil }
	if b, err := in.ReadByte(); err != nil || b != 0 {
		return false
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return false
		}
		switch words := strings.Fields(line); {
		case words[0] == "AUTH" && len(words) == 1:
			say("REJECTED EXTERNAL")
		case words[0] == "AUTH" && words[1] == "EXTERNAL" && len(words) == 2:
			say("DATA")
		case words[0] == "DATA" && len(words) == 1:
			say("OK " + hex.EncodeToString(make([]byte, 16)))
		case words[0] == "BEGIN":
			return true
		case words[0] == "NEGOTIATE_UNIX_FD":
			say("ERROR")
		default:
			t.Errorf("handshake: %q", line)
			return false
		}
	}
}

func (c *fakeClient) serve(t *testing.T) {
	defer c.conn.Close()
	in := bufio.NewReader(c.conn)
	if !c.handshake(t, in) {
		return
	}
	c.mu.Lock()
	c.ready = true
	c.mu.Unlock()
	for {
		msg, err := dbus.DecodeMessage(in)
		if err != nil {
			return
		}
		if msg.Type == dbus.TypeMethodCall && !c.handle(msg) {
			return
		}
	}
}

func header(msg *dbus.Message, f dbus.HeaderField) string {
	switch v := msg.Headers[f].Value().(type) {
	case string:
		return v
	case dbus.ObjectPath:
		return string(v)
	}
	return ""
}

// handle answers a call, and says whether the connection goes on.
func (c *fakeClient) handle(msg *dbus.Message) bool {
	f := c.fake
	member, iface := header(msg, dbus.FieldMember), header(msg, dbus.FieldInterface)
	f.mu.Lock()
	drop := f.breakOn == member
	if drop {
		if f.breakMore--; f.breakMore < 0 {
			f.breakOn = ""
		}
	}
	after := f.breakAfter
	f.mu.Unlock()
	if drop && !after {
		return false
	}
	var reply []any
	var end *jobEnd
	var failed *dbus.Error
	switch iface {
	case "org.freedesktop.DBus":
		reply = c.bus(member, msg.Body)
	case "org.freedesktop.DBus.Properties":
		var value any
		value, failed = f.get(dbus.ObjectPath(header(msg, dbus.FieldPath)), msg.Body[1].(string))
		if failed == nil {
			v, made := value.(dbus.Variant)
			if !made {
				v = dbus.MakeVariant(value)
			}
			reply = []any{v}
		}
	default:
		if member == "Subscribe" {
			c.mu.Lock()
			if c.wants {
				failed = dbus.NewError(busName+".AlreadySubscribed", []any{"Client is already subscribed."})
			}
			c.wants = true
			c.mu.Unlock()
		}
		if failed == nil {
			reply, end, failed = f.call(member, msg.Body)
		}
	}
	if drop {
		return false
	}
	if end != nil && f.early {
		f.tell(end)
	}
	if msg.Flags&dbus.FlagNoReplyExpected == 0 {
		c.answer(msg, reply, failed)
	}
	if end != nil && !f.early {
		f.tell(end)
	}
	return true
}

func (c *fakeClient) bus(member string, body []any) []any {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch member {
	case "Hello":
		c.hello = true
		return []any{":1.7"}
	case "AddMatch":
		c.matches = append(c.matches, body[0].(string))
	case "RemoveMatch":
		c.matches = slices.DeleteFunc(c.matches, func(m string) bool { return m == body[0] })
	}
	return nil
}

func (c *fakeClient) answer(to *dbus.Message, body []any, failed *dbus.Error) {
	msg := &dbus.Message{Type: dbus.TypeMethodReply, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(to.Serial()),
	}}
	if failed != nil {
		msg.Type, msg.Body = dbus.TypeError, failed.Body
		msg.Headers[dbus.FieldErrorName] = dbus.MakeVariant(failed.Name)
	}
	c.send(msg)
}

func (c *fakeClient) send(msg *dbus.Message) {
	if len(msg.Body) > 0 {
		msg.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(msg.Body...))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = msg.EncodeTo(c.conn, binary.LittleEndian) // the client may be gone
}

// tell sends JobRemoved to those who get it: on a bus, those with a matching rule, since somebody
// has queued the job; on systemd's own socket everybody.
func (f *fakeSystemd) tell(e *jobEnd) {
	f.mu.Lock()
	clients := slices.Clone(f.clients)
	f.mu.Unlock()
	for _, c := range clients {
		c.mu.Lock()
		gets := f.private && c.ready || slices.Contains(c.matches, "type='signal',interface='"+managerInterface+"',member='JobRemoved',path='"+managerPath+"',arg2='"+e.unit+"'")
		c.mu.Unlock()
		if !gets {
			continue
		}
		// Jobs of others come in between on a busy machine.
		for _, job := range []dbus.ObjectPath{"/org/freedesktop/systemd1/job/99999", e.job} {
			c.send(&dbus.Message{Type: dbus.TypeSignal, Body: []any{e.id, job, e.unit, e.result}, Headers: map[dbus.HeaderField]dbus.Variant{
				dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath(managerPath)), dbus.FieldInterface: dbus.MakeVariant(managerInterface), dbus.FieldMember: dbus.MakeVariant("JobRemoved"),
			}})
		}
	}
}
