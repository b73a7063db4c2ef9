package systemd_test

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/godbus/dbus/v5"
)

const (
	busName          = "org.freedesktop.systemd1"
	managerPath      = "/org/freedesktop/systemd1"
	managerInterface = busName + ".Manager"
)

// unitPath is the object of a unit whose name has no other bytes than letters, digits, "-" and ".".
func unitPath(name string) string {
	return managerPath + "/unit/" + strings.NewReplacer("-", "_2d", ".", "_2e").Replace(name)
}

// fakeSystemd is as much of systemd's D-Bus interface as the driver uses. It reads and
// writes messages by godbus, which so checks our own client.
type fakeSystemd struct {
	mu       sync.Mutex
	version  string
	units    map[string]*fakeUnit
	results  map[string]string // how the job of a unit ends, where not as done
	silent   map[string]bool   // units whose jobs never end
	refuse   map[string]*dbus.Error
	early    bool // JobRemoved goes out before the reply that names the job
	machines map[string]string
	private  bool // there is no bus, and everybody gets all signals
	jobs     int
	calls    []string

	// breakOn drops the connection, once, when this method is called;
	// breakAfter carries the call out first.
	breakOn    string
	breakAfter bool

	clients []*fakeClient
}

type fakeUnit struct {
	active, sub, description string
	stuck                    bool // reset-failed does not help
	frozen                   bool
	properties               map[string][]dbus.Variant
}

func newFake() *fakeSystemd {
	return &fakeSystemd{version: "257.4-1", units: map[string]*fakeUnit{}, results: map[string]string{}, silent: map[string]bool{}, refuse: map[string]*dbus.Error{}, machines: map[string]string{}}
}

func noSuchUnit(name string) *dbus.Error {
	return dbus.NewError(busName+".NoSuchUnit", []any{"Unit " + name + " not loaded."})
}

// call carries out a method of the manager. After it there may be the end of a
// job to tell.
func (f *fakeSystemd) call(member string, body []any) (reply []any, end *jobEnd, err *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, member)
	if e := f.refuse[member]; e != nil {
		return nil, nil, e
	}
	name := ""
	if len(body) > 0 {
		name, _ = body[0].(string)
	}
	u := f.units[name]
	switch member {
	case "Subscribe":
		return nil, nil, nil
	case "StartTransientUnit":
		if u != nil {
			return nil, nil, dbus.NewError(busName+".UnitExists", []any{"Unit " + name + " was already loaded or has a fragment file."})
		}
		u = &fakeUnit{active: "active", sub: "running", properties: map[string][]dbus.Variant{}}
		for _, p := range body[2].([][]any) {
			key, value := p[0].(string), p[1].(dbus.Variant)
			if key == "Bogus" {
				return nil, nil, dbus.NewError("org.freedesktop.DBus.Error.PropertyReadOnly", []any{"Cannot set property Bogus, or unknown property."})
			}
			if key == "CollectMode" && value.Signature().String() != "s" {
				return nil, nil, dbus.NewError("System.Error.ENXIO", []any{"No such device or address"})
			}
			u.properties[key] = append(u.properties[key], value)
			if key == "Description" {
				u.description, _ = value.Value().(string)
			}
		}
		f.units[name] = u
		if r := f.results[name]; r != "" && r != "done" {
			u.active, u.sub = "failed", "failed"
		}
		return f.job(name)
	case "StopUnit":
		if u == nil {
			return nil, nil, noSuchUnit(name)
		}
		delete(f.units, name)
		return f.job(name)
	case "ResetFailedUnit":
		if u == nil {
			return nil, nil, noSuchUnit(name)
		}
		if u.active != "active" && !u.stuck {
			delete(f.units, name)
		}
		return nil, nil, nil
	case "SetUnitProperties":
		if u == nil {
			return nil, nil, noSuchUnit(name)
		}
		for _, p := range body[2].([][]any) {
			if p[0] == "Bogus" {
				return nil, nil, dbus.NewError("org.freedesktop.DBus.Error.PropertyReadOnly", []any{"Cannot set property Bogus, or unknown property."})
			}
			u.properties[p[0].(string)] = append(u.properties[p[0].(string)], p[1].(dbus.Variant))
		}
		return nil, nil, nil
	case "RegisterMachine":
		f.machines[name] = strings.TrimSpace(fmt.Sprintln(body[1:]...))
		return []any{dbus.ObjectPath("/org/freedesktop/machine1/machine/x")}, nil, nil
	case "FreezeUnit", "ThawUnit":
		if u == nil {
			return nil, nil, noSuchUnit(name)
		}
		u.frozen = member == "FreezeUnit"
		return nil, nil, nil
	}
	return nil, nil, dbus.NewError("org.freedesktop.DBus.Error.UnknownMethod", []any{"Unknown method " + member})
}

// jobEnd is a JobRemoved to send.
type jobEnd struct {
	id     uint32
	job    dbus.ObjectPath
	unit   string
	result string
}

func (f *fakeSystemd) job(unit string) ([]any, *jobEnd, *dbus.Error) {
	f.jobs++
	e := &jobEnd{uint32(f.jobs), dbus.ObjectPath("/org/freedesktop/systemd1/job/" + string(rune('0'+f.jobs%10))), unit, "done"}
	if r := f.results[unit]; r != "" {
		e.result = r
	}
	if f.silent[unit] {
		return []any{e.job}, nil, nil
	}
	return []any{e.job}, e, nil
}

// asTyped gives lists of pairs the types that the encoder knows as pairs.
func asTyped(v dbus.Variant) dbus.Variant {
	switch v.Signature().String() {
	case "a(st)":
		var list []ledger.DeviceValue
		if v.Store(&list) == nil {
			return dbus.MakeVariant(list)
		}
	case "a(ss)":
		var list []device.Allowed
		if v.Store(&list) == nil {
			return dbus.MakeVariant(list)
		}
	}
	return v
}

func (f *fakeSystemd) get(path dbus.ObjectPath, name string) (any, *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, "Get "+name)
	if name == "Version" {
		return f.version, nil
	}
	unit, u := "", (*fakeUnit)(nil)
	for n, one := range f.units {
		if unitPath(n) == string(path) {
			unit, u = n, one
		}
	}
	if u == nil {
		u = &fakeUnit{active: "inactive", sub: "dead"}
	}
	switch name {
	case "ActiveState":
		return u.active, nil
	case "SubState":
		return u.sub, nil
	case "Description":
		return u.description, nil
	case "ControlGroup":
		if unit == "" {
			return "", nil
		}
		return "/system.slice/" + unit, nil
	}
	if set := u.properties[name]; len(set) > 0 {
		return asTyped(set[len(set)-1]), nil
	}
	return nil, dbus.NewError("org.freedesktop.DBus.Error.UnknownProperty", []any{"Unknown property " + name})
}

func (f *fakeSystemd) called(member string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if c == member {
			n++
		}
	}
	return n
}

func (f *fakeSystemd) unit(name string) *fakeUnit {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.units[name]
}

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
		f.breakOn = ""
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
			c.wants = true
			c.mu.Unlock()
		}
		reply, end, failed = f.call(member, msg.Body)
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

// tell sends JobRemoved to those who get it: on a bus, those with a matching
// rule after Subscribe; on systemd's own socket everybody.
func (f *fakeSystemd) tell(e *jobEnd) {
	f.mu.Lock()
	clients := slices.Clone(f.clients)
	f.mu.Unlock()
	for _, c := range clients {
		c.mu.Lock()
		gets := f.private && c.ready || c.wants && slices.Contains(c.matches, "type='signal',interface='"+managerInterface+"',member='JobRemoved',path='"+managerPath+"',arg2='"+e.unit+"'")
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
