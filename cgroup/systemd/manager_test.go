package systemd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
	"github.com/godbus/dbus/v5"
)

// start makes a Manager on a fake.
func start(t *testing.T, f *fakeSystemd) *Manager {
	t.Helper()
	m := New(Options{Address: f.serve(t), Timeout: 20 * time.Second})
	t.Cleanup(func() { m.Close() })
	return m
}

var testPlace = unit.Place{Slice: "machine.slice", Unit: "berth-c1.scope"}

func testProperties() []Property { return Base(testPlace, "container c1", 42) }

func TestStart(t *testing.T) {
	for _, early := range []bool{false, true} {
		f := newFake()
		f.early = early
		m := start(t, f)
		limits := Resources([]ledger.Property{
			{Name: "MemoryMax", Value: uint64(1 << 20), Pointer: "/memory/limit"},
			{Name: "AllowedCPUs", Value: []byte{3}},
			{Name: "IOReadBandwidthMax", Value: []ledger.DeviceValue{{Path: "/dev/block/8:0", Value: 5}}},
			{Name: "CPUAccounting", Value: true},
		})
		properties := append(testProperties(), limits...)
		properties = append(properties, Devices("strict", []device.Allowed{{Path: "char-pts", Access: "rw"}})...)
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
	if _, err := m.Start(context.Background(), place.Unit, Base(place, "pod 1")); err != nil {
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
	if _, err := m.Start(context.Background(), testPlace.Unit, Override(testProperties(), Annotations(list))); err != nil {
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
		_, err = m.Start(context.Background(), testPlace.Unit, append(testProperties(), Annotations(list)...))
		var e *Error
		if !errors.As(err, &e) || e.Source != c.want || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	f := newFake()
	m := start(t, f)
	if _, err := m.Start(context.Background(), testPlace.Unit, testProperties()); err != nil {
		t.Fatal(err)
	}
	err := m.Set(context.Background(), testPlace.Unit, []Property{{"Bogus", true, "/memory/limit"}})
	var e *Error
	if !errors.As(err, &e) || e.Source != "/memory/limit" {
		t.Errorf("%v", err)
	}
	if hasWord("Cannot set MemoryMaxScale", "MemoryMax") || !hasWord("Cannot set MemoryMax.", "MemoryMax") || !hasWord("MemoryMaxScale, MemoryMax", "MemoryMax") {
		t.Error("words are not found as words")
	}
}

func TestJobResults(t *testing.T) {
	for _, result := range []string{"canceled", "timeout", "failed", "dependency", "skipped", "unheard-of"} {
		f := newFake()
		f.results[testPlace.Unit] = result
		m := start(t, f)
		_, err := m.Start(context.Background(), testPlace.Unit, testProperties())
		var job *JobError
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
		if c.works != (err == nil) || err != nil && (!errors.Is(err, ErrUnitExists) || !strings.Contains(err.Error(), c.says)) {
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
	m := New(Options{Address: address, Timeout: 50 * time.Millisecond})
	defer m.Close()
	if _, err := m.Start(context.Background(), testPlace.Unit, testProperties()); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
}

// What an overdue job may still make is stopped.
func TestOverdue(t *testing.T) {
	f := newFake()
	f.silent[testPlace.Unit] = true
	m := New(Options{Address: f.serve(t), Timeout: time.Minute})
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
				err = m.Set(context.Background(), testPlace.Unit, []Property{plainProperty("TasksMax", uint64(1))})
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
	if err := m.Freeze(ctx, "berth-none.scope"); !errors.Is(err, ErrNoUnit) {
		t.Errorf("freeze of what is not there: %v", err)
	}
	if err := m.Set(ctx, "berth-none.scope", []Property{plainProperty("TasksMax", uint64(1))}); !errors.Is(err, ErrNoUnit) {
		t.Errorf("set of what is not there: %v", err)
	}
	if _, err := m.ControlGroup(ctx, "berth-none.scope"); !errors.Is(err, ErrNoUnit) {
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
	if err := m.Set(ctx, testPlace.Unit, []Property{plainProperty("TasksMax", uint64(9))}); err != nil || f.unit(testPlace.Unit).properties["TasksMax"][0].Value() != uint64(9) {
		t.Errorf("set: %v", err)
	}
	f.mu.Lock()
	f.refuse["FreezeUnit"] = dbus.NewError("org.freedesktop.DBus.Error.UnknownMethod", []any{"Unknown method FreezeUnit"})
	f.mu.Unlock()
	if err := m.Freeze(ctx, testPlace.Unit); !errors.Is(err, ErrNoFreezer) {
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
	before := append(testProperties(), plainProperty("TasksMax", uint64(9)), plainProperty("IODeviceWeight", weights),
		plainProperty("DeviceAllow", allow), plainProperty("IOReadBandwidthMax", []ledger.DeviceValue{}))
	if _, err := m.Start(ctx, testPlace.Unit, before); err != nil {
		t.Fatal(err)
	}
	changes := []Property{plainProperty("TasksMax", uint64(1)), plainProperty("IODeviceWeight", []ledger.DeviceValue{{Path: "/dev/sdb", Value: 1}}),
		plainProperty("DeviceAllow", []device.Allowed{}), plainProperty("DeviceAllow", []device.Allowed{{Path: "/dev/zero", Access: "r"}}),
		plainProperty("IOReadBandwidthMax", []ledger.DeviceValue{{Path: "/dev/sdb", Value: 1}})}
	present, err := m.Present(ctx, testPlace.Unit, changes)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range present {
		v, err := variant(p.Value)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %v", p.Name, v.Type, v.Value))
	}
	want := []string{"TasksMax t 9",
		"IODeviceWeight a(st) []", "IODeviceWeight a(st) [[/dev/sda 200]]",
		"DeviceAllow a(ss) []", "DeviceAllow a(ss) [[/dev/null rw]]",
		"IOReadBandwidthMax a(st) []"}
	if !slices.Equal(got, want) {
		t.Errorf("present properties %q, want %q", got, want)
	}
	if err := m.Set(ctx, testPlace.Unit, present); err != nil {
		t.Error(err)
	}
	if _, err := m.Present(ctx, testPlace.Unit, []Property{plainProperty("Unknown", uint64(1))}); err == nil {
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
	for text, want := range map[string]int{"257.4-1": 257, "v249": 249, "systemd 245": 245, "252~rc1": 252, "": 0, "x": 0} {
		if got, err := parseVersion(text); got != want || (err == nil) != (want != 0) {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
}

func TestPrivateSocket(t *testing.T) {
	f := newFake()
	f.private = true
	path := strings.TrimPrefix(f.serve(t), "unix:path=")
	m := New(Options{})
	defer m.Close()
	ctx, cancel := m.deadline(context.Background())
	defer cancel()
	c, err := dialSocket(ctx, socket{path: path, private: true})
	if err != nil {
		t.Fatal(err)
	}
	m.conn = c
	if _, err := m.Start(context.Background(), testPlace.Unit, testProperties()); err != nil {
		t.Fatal(err)
	}
	if f.called("Subscribe") != 0 || f.clients[0].hello {
		t.Error("a bus was talked to where there is none")
	}
}

func TestSockets(t *testing.T) {
	got := busSockets("unix:path=/run/user/1000/bus,guid=00;tcp:host=x;unix:abstract=a%2fb;unix:dir=/tmp")
	if fmt.Sprint(got) != "[{/run/user/1000/bus false} {@a/b false}]" {
		t.Errorf("%v", got)
	}
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	if got := New(Options{User: true}).sockets(); fmt.Sprint(got) != "[{/run/user/7/bus false} {/run/user/7/systemd/private true}]" {
		t.Errorf("%v", got)
	}
	t.Setenv("XDG_RUNTIME_DIR", "")
	_, err := New(Options{User: true}).Version(context.Background())
	if err == nil || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") {
		t.Errorf("no bus at all: %v", err)
	}
	_, err = New(Options{Address: "unix:path=" + t.TempDir() + "/none"}).Version(context.Background())
	if err == nil || !strings.Contains(err.Error(), "is systemd running here?") {
		t.Errorf("no systemd: %v", err)
	}
}

// TestManyAtOnce has as many clients as a busy node, each with a connection.
func TestManyAtOnce(t *testing.T) {
	f := newFake()
	address := f.serve(t)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			m := New(Options{Address: address, Timeout: time.Minute})
			defer m.Close()
			place := unit.Place{Slice: "system.slice", Unit: fmt.Sprintf("berth-%d.scope", i)}
			if _, err := m.Start(context.Background(), place.Unit, Base(place, place.Unit, i+1)); err != nil {
				t.Error(err)
			}
			if err := m.Stop(context.Background(), place.Unit); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestUnitPath(t *testing.T) {
	for name, want := range map[string]string{
		"berth-c1.scope": "berth_2dc1_2escope", "1.scope": "_31_2escope", `a\x2b.slice`: "a_5cx2b_2eslice",
	} {
		if got := string(unitPath(name)); got != "/org/freedesktop/systemd1/unit/"+want {
			t.Errorf("%s is %s", name, got)
		}
	}
}
