package systemd_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
)

// systemd is one process for the whole machine, so what it is asked counts: a unit that is started
// and stopped is three calls, and no Subscribe, which would have it send everything to the bus.
func TestFewCalls(t *testing.T) {
	f := newFake()
	m := start(t, f)
	ctx := context.Background()
	if err := m.Start(ctx, testPlace.Unit, testProperties()); err != nil {
		t.Fatal(err)
	}
	if err := m.Stop(ctx, testPlace.Unit); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if want := []string{"StartTransientUnit", "StopUnit", "ResetFailedUnit"}; !slices.Equal(f.calls, want) {
		t.Errorf("called %q, want %q", f.calls, want)
	}
}

// The bus gives a connection some hundred rules: one that lives long takes its own back.
func TestRulesAreTakenBack(t *testing.T) {
	f := newFake()
	m := start(t, f)
	ctx := context.Background()
	for i := range 200 {
		place := unit.Place{Slice: "machine.slice", Unit: fmt.Sprintf("berth-c%d.scope", i)}
		if err := m.Start(ctx, place.Unit, systemd.Base(place, "container", 42)); err != nil {
			t.Fatal(err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.clients[0]
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.matches); len(f.clients) != 1 || n > 40 {
		t.Errorf("%d connections, %d rules", len(f.clients), n)
	}
}

// A bus that hangs, or that has no room for another connection, keeps nobody from systemd's socket.
func TestSystemdsOwnSocket(t *testing.T) {
	for _, bus := range []string{"silent", "full", "absent"} {
		dir := t.TempDir()
		t.Setenv("XDG_RUNTIME_DIR", dir)
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
		switch bus {
		case "silent":
			l, err := net.Listen("unix", filepath.Join(dir, "bus"))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		case "full":
			full := newFake()
			full.breakOn, full.breakMore = "Hello", 1000
			full.serveAt(t, filepath.Join(dir, "bus"))
		}
		if err := os.Mkdir(filepath.Join(dir, "systemd"), 0o700); err != nil {
			t.Fatal(err)
		}
		f := newFake()
		f.private = true
		f.serveAt(t, filepath.Join(dir, "systemd", "private"))
		m := systemd.New(systemd.Options{User: true, Timeout: 8 * time.Second})
		defer m.Close()
		if err := m.Start(context.Background(), testPlace.Unit, testProperties()); err != nil {
			t.Errorf("a %s bus: %v", bus, err)
		}
		if f.unit(testPlace.Unit) == nil {
			t.Errorf("a %s bus: no unit", bus)
		}
	}
}
