package systemd_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/godbus/dbus/v5"
)

// realBus starts a dbus-daemon with the fake as a service on it, so that the
// handshake, the match rules and the credentials are those of a real bus.
func realBus(t *testing.T, f *fakeSystemd) string {
	t.Helper()
	daemon, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skipf("no dbus-daemon here: %v", err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "bus.conf")
	err = os.WriteFile(config, []byte(`<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=`+dir+`/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(daemon, "--nofork", "--nopidfile", "--print-address", "--config-file="+config)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("dbus-daemon does not start here: %v", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Skipf("dbus-daemon does not run here: %v", err)
	}
	address := strings.TrimSpace(line)
	conn, err := dbus.Connect(address, dbus.WithHandler(serviceHandler{f}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if reply, err := conn.RequestName(busName, 0); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("%v %v", reply, err)
	}
	return address
}

// serviceHandler passes the calls that come over a real bus to the fake.
type serviceHandler struct{ fake *fakeSystemd }

func (h serviceHandler) LookupObject(path dbus.ObjectPath) (dbus.ServerObject, bool) {
	return serviceObject{h, path}, true
}

type serviceObject struct {
	serviceHandler
	path dbus.ObjectPath
}

func (o serviceObject) LookupInterface(name string) (dbus.Interface, bool) { return o, true }

func (o serviceObject) LookupMethod(name string) (dbus.Method, bool) {
	return serviceMethod{o, name, new(*dbus.Conn)}, true
}

type serviceMethod struct {
	serviceObject
	name string
	on   **dbus.Conn
}

func (m serviceMethod) NumArguments() int     { return 0 }
func (m serviceMethod) NumReturns() int       { return 0 }
func (m serviceMethod) ArgumentValue(int) any { return nil }
func (m serviceMethod) ReturnValue(int) any   { return nil }

func (m serviceMethod) DecodeArguments(conn *dbus.Conn, _ string, _ *dbus.Message, args []any) ([]any, error) {
	*m.on = conn
	return args, nil
}

func (m serviceMethod) Call(args ...any) ([]any, error) {
	if m.name == "Get" {
		value, err := m.fake.get(m.path, args[1].(string))
		if err != nil {
			return nil, err
		}
		return []any{dbus.MakeVariant(value)}, nil
	}
	reply, end, err := m.fake.call(m.name, args)
	if err != nil {
		return nil, err
	}
	if end != nil {
		// Here the signal goes out before the reply.
		return reply, (*m.on).Emit(dbus.ObjectPath(managerPath), managerInterface+".JobRemoved", end.id, end.job, end.unit, end.result)
	}
	return reply, nil
}

func TestRealBus(t *testing.T) {
	f := newFake()
	m := systemd.New(systemd.Options{Address: realBus(t, f), Timeout: 20 * time.Second})
	defer m.Close()
	ctx := context.Background()
	if v, err := m.Version(ctx); err != nil || v != 257 {
		t.Errorf("version %d (%v)", v, err)
	}
	f.mu.Lock()
	f.units[testPlace.Unit] = &fakeUnit{active: "failed"}
	f.mu.Unlock()
	if err := m.Start(ctx, testPlace.Unit, testProperties()); err != nil {
		t.Fatal(err)
	}
	path, err := m.ControlGroup(ctx, testPlace.Unit)
	if err != nil || path != "/system.slice/"+testPlace.Unit {
		t.Fatalf("%q %v", path, err)
	}
	if got := showValue(f.unit(testPlace.Unit).properties["Slice"][0].Value()); got != `"machine.slice"` {
		t.Errorf("Slice is %s", got)
	}
	if err := m.Start(ctx, testPlace.Unit, testProperties()); !errors.Is(err, systemd.ErrUnitExists) {
		t.Errorf("a second one: %v", err)
	}
	if err := m.Freeze(ctx, testPlace.Unit); err != nil {
		t.Errorf("freeze: %v", err)
	}
	if err := m.Stop(ctx, testPlace.Unit); err != nil || f.unit(testPlace.Unit) != nil {
		t.Errorf("stop: %v", err)
	}
}

// TestSilentBus has a bus that takes the connection and says nothing.
func TestSilentBus(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bus")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m := systemd.New(systemd.Options{Address: "unix:path=" + path, Timeout: 50 * time.Millisecond})
	if _, err := m.Version(context.Background()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m = systemd.New(systemd.Options{Address: "unix:path=" + path})
	if _, err := m.Version(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
