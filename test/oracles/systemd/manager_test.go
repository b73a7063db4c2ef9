package systemd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
	"github.com/godbus/dbus/v5"
)

// start makes a systemd.Manager on a fake.
func start(t *testing.T, f *fakeSystemd) *systemd.Manager {
	t.Helper()
	m := systemd.New(systemd.Options{Address: f.serve(t), Timeout: 20 * time.Second})
	t.Cleanup(func() { m.Close() })
	return m
}

var testPlace = unit.Place{Slice: "machine.slice", Unit: "berth-c1.scope"}

// property is one that no entry of a config has asked for.
func property(name string, value any) systemd.Property {
	return systemd.Property{Name: name, Value: value}
}

func testProperties() []systemd.Property { return systemd.Base(testPlace, "container c1", 42) }

func TestStart(t *testing.T) {
	for _, early := range []bool{false, true} {
		f := newFake()
		f.early = early
		m := start(t, f)
		limits := systemd.Resources([]ledger.Property{
			{Name: "MemoryMax", Value: uint64(1 << 20), Pointer: "/memory/limit"},
			{Name: "AllowedCPUs", Value: []byte{3}},
			{Name: "IOReadBandwidthMax", Value: []ledger.DeviceValue{{Path: "/dev/block/8:0", Value: 5}}},
			{Name: "CPUAccounting", Value: true},
		})
		properties := append(testProperties(), limits...)
		properties = append(properties, systemd.Devices("strict", []device.Allowed{{Path: "char-pts", Access: "rw"}})...)
		path, err := m.Start(context.Background(), testPlace.Unit, properties)
		if err != nil || path != "/system.slice/berth-c1.scope" {
			t.Fatalf("early %v: %q %v", early, path, err)
		}
		u := f.unit(testPlace.Unit)
		for name, want := range map[string]string{
			"Description": `s "container c1"`, "Slice": `s "machine.slice"`, "Delegate": `b true`, "PIDs": `au [42]`, "DefaultDependencies": `b false`,
			"MemoryMax": `t 1048576`, "AllowedCPUs": `ay [3]`, "IOReadBandwidthMax": `a(st) [["/dev/block/8:0" 5]]`, "CPUAccounting": `b true`,
			"DevicePolicy": `s "strict"`, "DeviceAllow": `a(ss) []; a(ss) [["char-pts" "rw"]]`,
		} {
			var got []string
			for _, v := range u.properties[name] {
				got = append(got, fmt.Sprintf("%s %s", v.Signature(), showValue(v.Value())))
			}
			if s := strings.Join(got, "; "); s != want {
				t.Errorf("%s is %s, want %s", name, s, want)
			}
		}
	}
}

func showValue(v any) string {
	switch v := v.(type) {
	case string, []string:
		return fmt.Sprintf("%q", v)
	case [][]any:
		var parts []string
		for _, one := range v {
			var inner []string
			for _, e := range one {
				inner = append(inner, showValue(e))
			}
			parts = append(parts, "["+strings.Join(inner, " ")+"]")
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprint(v)
}

func TestStartSlice(t *testing.T) {
	f := newFake()
	m := start(t, f)
	place := unit.Place{Slice: "kubepods.slice", Unit: "kubepods-pod1.slice"}
	if _, err := m.Start(context.Background(), place.Unit, systemd.Base(place, "pod 1")); err != nil {
		t.Fatal(err)
	}
	u := f.unit(place.Unit)
	if w := u.properties["Wants"]; len(w) != 1 || showValue(w[0].Value()) != `["kubepods.slice"]` {
		t.Errorf("Wants is %v", w)
	}
	for _, no := range []string{"Slice", "Delegate", "PIDs"} {
		if u.properties[no] != nil {
			t.Errorf("a slice has %s", no)
		}
	}
}

func TestAnnotations(t *testing.T) {
	list, err := unit.Annotations(map[string]string{
		"org.systemd.property.Description":    "'mine'",
		"org.systemd.property.TimeoutStopSec": "1.5",
		"org.systemd.property.Nested":         "{'a': <(byte 1, int16 -2, uint16 3, 4, uint32 5, int64 6, 7.5, [true], @as [])>}",
		"org.systemd.property.Path":           "objectpath '/a'",
		"org.systemd.property.Signature":      "signature 'ai'",
		"org.systemd.property.Bytes":          "b'x'",
	})
	if err != nil {
		t.Fatal(err)
	}
	f := newFake()
	m := start(t, f)
	if _, err := m.Start(context.Background(), testPlace.Unit, systemd.Override(testProperties(), systemd.Annotations(list))); err != nil {
		t.Fatal(err)
	}
	u := f.unit(testPlace.Unit)
	for name, want := range map[string]string{
		"Description": "s mine", "TimeoutStopUSec": "t 1500000", "Path": "o /a", "Signature": "g ai", "Bytes": "ay [120 0]",
	} {
		p := u.properties[name]
		if len(p) != 1 || fmt.Sprintf("%s %v", p[0].Signature(), p[0].Value()) != want {
			t.Errorf("%s is %v, want %s", name, p, want)
		}
	}
	nested, _ := u.properties["Nested"][0].Value().(map[string]dbus.Variant)
	if s := nested["a"].Signature().String(); s != "(ynqiuxdabas)" {
		t.Errorf("Nested is %v with %s", nested, s)
	}
	if got := fmt.Sprint(nested["a"].Value()); got != "[1 -2 3 4 5 6 7.5 [true] []]" {
		t.Errorf("Nested has %s", got)
	}
}

func TestBlame(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string
	}{
		{"Bogus", "5", "annotation org.systemd.property.Bogus"},
		{"CollectMode", "5", "annotation org.systemd.property.CollectMode"},
	} {
		list, err := unit.Annotations(map[string]string{"org.systemd.property." + c.name: c.text})
		if err != nil {
			t.Fatal(err)
		}
		m := start(t, newFake())
		_, err = m.Start(context.Background(), testPlace.Unit, append(testProperties(), systemd.Annotations(list)...))
		var e *systemd.Error
		if !errors.As(err, &e) || e.Source != c.want || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	f := newFake()
	m := start(t, f)
	if _, err := m.Start(context.Background(), testPlace.Unit, testProperties()); err != nil {
		t.Fatal(err)
	}
	err := m.Set(context.Background(), testPlace.Unit, []systemd.Property{{Name: "Bogus", Value: true, Source: "/memory/limit"}})
	var e *systemd.Error
	if !errors.As(err, &e) || e.Source != "/memory/limit" {
		t.Errorf("%v", err)
	}
}

func TestJobResults(t *testing.T) {
	for _, result := range []string{"canceled", "timeout", "failed", "dependency", "skipped", "unheard-of"} {
		f := newFake()
		f.results[testPlace.Unit] = result
		m := start(t, f)
		_, err := m.Start(context.Background(), testPlace.Unit, testProperties())
		var job *systemd.JobError
		if !errors.As(err, &job) || job.Result != result || !strings.Contains(err.Error(), testPlace.Unit) {
			t.Errorf("%s: %v", result, err)
		}
		// The failed unit must not be in the way of the next try. The call
		// needs no answer, so ask for something that comes after it.
		if _, err := m.Version(context.Background()); err != nil {
			t.Fatal(err)
		}
		if u := f.unit(testPlace.Unit); u != nil {
			t.Errorf("%s: the unit is left %+v", result, u)
		}
	}
}

func TestLeftover(t *testing.T) {
	for _, c := range []struct {
		name  string
		unit  fakeUnit
		works bool
		says  string
		reset int
	}{
		{"failed", fakeUnit{active: "failed", sub: "failed"}, true, "", 1},
		{"dead", fakeUnit{active: "inactive", sub: "dead"}, true, "", 1},
		{"running", fakeUnit{active: "active", sub: "running", description: "another"}, false, `"another" is active (running)`, 0},
		{"stuck", fakeUnit{active: "failed", sub: "failed", description: "old", stuck: true}, false, `"old" is failed (failed), and systemctl reset-failed did not help`, 1},
	} {
		f := newFake()
		f.units[testPlace.Unit] = &c.unit
		m := start(t, f)
		_, err := m.Start(context.Background(), testPlace.Unit, testProperties())
		if c.works != (err == nil) || err != nil && (!errors.Is(err, systemd.ErrUnitExists) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", c.name, err)
		}
		if n := f.called("ResetFailedUnit"); n != c.reset {
			t.Errorf("%s: reset %d times, want %d", c.name, n, c.reset)
		}
	}
}

func TestDeadline(t *testing.T) {
	f := newFake()
	f.silent[testPlace.Unit] = true
	address := f.serve(t)
	m := systemd.New(systemd.Options{Address: address, Timeout: 50 * time.Millisecond})
	defer m.Close()
	if _, err := m.Start(context.Background(), testPlace.Unit, testProperties()); !errors.Is(err, context.DeadlineExceeded) {
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
	if _, err := m.Start(ctx, testPlace.Unit, testProperties()); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	// Nobody waits for these, so that they come after Start has.
	for deadline := time.Now().Add(time.Minute); f.called("StopUnit") == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it was not stopped")
		}
	}
}

// Whoever listens anew for years does not use up the rules that the bus gives him.
func TestChangesLeaveNoRules(t *testing.T) {
	f := newFake()
	m := start(t, f)
	for range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		changes, err := m.Changes(ctx, "system.slice", "kubelet.service")
		if err != nil {
			t.Fatal(err)
		}
		rules := func() int {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.clients[0].mu.Lock()
			defer f.clients[0].mu.Unlock()
			return len(f.clients[0].matches)
		}
		if got := rules(); got != 5 {
			t.Errorf("%d rules", got)
		}
		cancel()
		if _, open := <-changes; open {
			t.Error("it is told of something")
		}
		for until := time.Now().Add(60 * time.Second); rules() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%d rules are left", rules())
			}
		}
	}
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
		{"Get", true, 1}, // the unit runs, and only its path is asked for again
	} {
		f := newFake()
		f.breakOn, f.breakAfter = c.method, c.after
		m := start(t, f)
		path, err := m.Start(context.Background(), testPlace.Unit, testProperties())
		if err != nil || path == "" {
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
			if _, err := m.Start(context.Background(), testPlace.Unit, testProperties()); err != nil {
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

func TestStopAndFreeze(t *testing.T) {
	f := newFake()
	m := start(t, f)
	ctx := context.Background()
	if err := m.Stop(ctx, "berth-none.scope"); err != nil {
		t.Errorf("stop of what is not there: %v", err)
	}
	if err := m.Freeze(ctx, "berth-none.scope"); !errors.Is(err, systemd.ErrNoUnit) {
		t.Errorf("freeze of what is not there: %v", err)
	}
	if err := m.Set(ctx, "berth-none.scope", []systemd.Property{property("TasksMax", uint64(1))}); !errors.Is(err, systemd.ErrNoUnit) {
		t.Errorf("set of what is not there: %v", err)
	}
	if _, err := m.ControlGroup(ctx, "berth-none.scope"); !errors.Is(err, systemd.ErrNoUnit) {
		t.Errorf("path of what is not there: %v", err)
	}
	if _, err := m.Start(ctx, testPlace.Unit, testProperties()); err != nil {
		t.Fatal(err)
	}
	if err := m.Freeze(ctx, testPlace.Unit); err != nil || !f.unit(testPlace.Unit).frozen {
		t.Errorf("freeze: %v", err)
	}
	if err := m.Thaw(ctx, testPlace.Unit); err != nil || f.unit(testPlace.Unit).frozen {
		t.Errorf("thaw: %v", err)
	}
	if err := m.Set(ctx, testPlace.Unit, []systemd.Property{property("TasksMax", uint64(9))}); err != nil || f.unit(testPlace.Unit).properties["TasksMax"][0].Value() != uint64(9) {
		t.Errorf("set: %v", err)
	}
	f.mu.Lock()
	f.refuse["FreezeUnit"] = dbus.NewError("org.freedesktop.DBus.Error.UnknownMethod", []any{"Unknown method FreezeUnit"})
	f.mu.Unlock()
	if err := m.Freeze(ctx, testPlace.Unit); !errors.Is(err, systemd.ErrNoFreezer) {
		t.Errorf("freeze before 246: %v", err)
	}
	if err := m.Stop(ctx, testPlace.Unit); err != nil || f.unit(testPlace.Unit) != nil {
		t.Errorf("stop: %v", err)
	}
}

// What Present reads, Set brings back: values as they are, lists after an empty one
// that clears what has been added since.
func TestPresentBringsBack(t *testing.T) {
	f := newFake()
	m := start(t, f)
	ctx := context.Background()
	weights := []ledger.DeviceValue{{Path: "/dev/sda", Value: 200}}
	allow := []device.Allowed{{Path: "/dev/null", Access: "rw"}}
	before := append(testProperties(), property("TasksMax", uint64(9)), property("IODeviceWeight", weights),
		property("DeviceAllow", allow), property("IOReadBandwidthMax", []ledger.DeviceValue{}))
	if _, err := m.Start(ctx, testPlace.Unit, before); err != nil {
		t.Fatal(err)
	}
	changes := []systemd.Property{property("TasksMax", uint64(1)), property("IODeviceWeight", []ledger.DeviceValue{{Path: "/dev/sdb", Value: 1}}),
		property("DeviceAllow", []device.Allowed{}), property("DeviceAllow", []device.Allowed{{Path: "/dev/zero", Access: "r"}}),
		property("IOReadBandwidthMax", []ledger.DeviceValue{{Path: "/dev/sdb", Value: 1}})}
	present, err := m.Present(ctx, testPlace.Unit, changes)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range present {
		got = append(got, fmt.Sprintf("%s %v", p.Name, p.Value)) // with the type on the bus
	}
	want := []string{"TasksMax {t 9}",
		"IODeviceWeight {a(st) []}", "IODeviceWeight {a(st) [[/dev/sda 200]]}",
		"DeviceAllow {a(ss) []}", "DeviceAllow {a(ss) [[/dev/null rw]]}",
		"IOReadBandwidthMax {a(st) []}"}
	if !slices.Equal(got, want) {
		t.Errorf("present properties %q, want %q", got, want)
	}
	if err := m.Set(ctx, testPlace.Unit, present); err != nil {
		t.Error(err)
	}
	if _, err := m.Present(ctx, testPlace.Unit, []systemd.Property{property("Unknown", uint64(1))}); err == nil {
		t.Error("a property that systemd does not know was read")
	}
}

func TestVersion(t *testing.T) {
	f := newFake()
	m := start(t, f)
	for range 3 {
		if v, err := m.Version(context.Background()); err != nil || v != 257 {
			t.Errorf("%d %v", v, err)
		}
	}
	if n := f.called("Get Version"); n != 1 {
		t.Errorf("asked %d times", n)
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
			if _, err := m.Start(context.Background(), place.Unit, systemd.Base(place, place.Unit, i+1)); err != nil {
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
	if _, err := m.Start(context.Background(), testPlace.Unit, testProperties()); err != nil {
		t.Fatal(err)
	}
	if f.called("Subscribe") != 0 || f.clients[0].hello {
		t.Error("a bus was talked to where there is none")
	}
}
