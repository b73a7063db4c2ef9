package systemd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
	"github.com/berth-runtime/berth/internal/test/wait"
)

func TestDeadline(t *testing.T) {
	f := newFake()
	f.silent[testPlace.Unit] = true
	address := f.serve(t)
	m := systemd.New(systemd.Options{Address: address, Timeout: 50 * time.Millisecond})
	defer m.Close()
	if err := m.Start(context.Background(), testPlace.Unit, testProperties()); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
}

// What an overdue job may still make is stopped.
func TestOverdue(t *testing.T) {
	f := newFake()
	f.silent[testPlace.Unit] = true
	m := systemd.New(systemd.Options{Address: f.serve(t), Timeout: time.Minute})
	defer m.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		// The end comes when systemd has heard the call, however slow the machine is.
		for f.called("StartTransientUnit") == 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if err := m.Start(ctx, testPlace.Unit, testProperties()); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	// Nobody waits for these, so that they come after Start has.
	wait.Until(t, "it is stopped", func() bool { return f.called("StopUnit") > 0 })
}

func TestLostConnection(t *testing.T) {
	for _, c := range []struct {
		method string
		after  bool
		starts int
	}{
		{"StartTransientUnit", false, 1}, // not heard: made again
		{"StartTransientUnit", true, 1},  // heard: not made again
		{"AddMatch", false, 1},
	} {
		f := newFake()
		f.breakOn, f.breakAfter = c.method, c.after
		m := start(t, f)
		err := m.Start(context.Background(), testPlace.Unit, testProperties())
		if err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if n := f.called("StartTransientUnit"); n != c.starts {
			t.Errorf("%+v: started %d times", c, n)
		}
		if f.unit(testPlace.Unit) == nil {
			t.Errorf("%+v: no unit", c)
		}
	}
	for _, method := range []string{"StopUnit", "SetUnitProperties", "FreezeUnit", "ThawUnit"} {
		for _, after := range []bool{false, true} {
			f := newFake()
			m := start(t, f)
			if err := m.Start(context.Background(), testPlace.Unit, testProperties()); err != nil {
				t.Fatal(err)
			}
			f.mu.Lock()
			f.breakOn, f.breakAfter = method, after
			f.mu.Unlock()
			var err error
			switch method {
			case "StopUnit":
				err = m.Stop(context.Background(), testPlace.Unit)
			case "SetUnitProperties":
				err = m.Set(context.Background(), testPlace.Unit, []systemd.Property{property("TasksMax", uint64(1))})
			case "FreezeUnit":
				err = m.Freeze(context.Background(), testPlace.Unit)
			case "ThawUnit":
				err = m.Thaw(context.Background(), testPlace.Unit)
			}
			if err != nil {
				t.Errorf("%s, after %v: %v", method, after, err)
			}
		}
	}
}

// TestManyAtOnce has as many clients as a busy node, each with a connection.
func TestManyAtOnce(t *testing.T) {
	f := newFake()
	address := f.serve(t)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			m := systemd.New(systemd.Options{Address: address, Timeout: time.Minute})
			defer m.Close()
			place := unit.Place{Slice: "system.slice", Unit: fmt.Sprintf("berth-%d.scope", i)}
			if err := m.Start(context.Background(), place.Unit, systemd.Base(place, place.Unit, i+1)); err != nil {
				t.Error(err)
			}
			if err := m.Stop(context.Background(), place.Unit); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestPrivateSocket(t *testing.T) {
	f := newFake()
	f.private = true
	// As the systemd of a user who has no bus.
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	if err := os.Mkdir(filepath.Join(dir, "systemd"), 0o700); err != nil {
		t.Fatal(err)
	}
	f.serveAt(t, filepath.Join(dir, "systemd", "private"))
	m := systemd.New(systemd.Options{User: true, Timeout: 20 * time.Second})
	defer m.Close()
	if err := m.Start(context.Background(), testPlace.Unit, testProperties()); err != nil {
		t.Fatal(err)
	}
	if f.called("Subscribe") != 0 || f.clients[0].hello {
		t.Error("a bus was talked to where there is none")
	}
}
