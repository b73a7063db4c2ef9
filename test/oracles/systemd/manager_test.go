package systemd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
		err := m.Start(context.Background(), testPlace.Unit, properties)
		if err != nil {
			t.Fatalf("early %v: %v", early, err)
		}
		path, err := m.ControlGroup(context.Background(), testPlace.Unit)
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
	if err := m.Start(context.Background(), place.Unit, systemd.Base(place, "pod 1")); err != nil {
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
	if err := m.Start(context.Background(), testPlace.Unit, systemd.Override(testProperties(), systemd.Annotations(list))); err != nil {
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
		err = m.Start(context.Background(), testPlace.Unit, append(testProperties(), systemd.Annotations(list)...))
		var e *systemd.Error
		if !errors.As(err, &e) || e.Source != c.want || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	f := newFake()
	m := start(t, f)
	if err := m.Start(context.Background(), testPlace.Unit, testProperties()); err != nil {
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
		err := m.Start(context.Background(), testPlace.Unit, testProperties())
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
		err := m.Start(context.Background(), testPlace.Unit, testProperties())
		if c.works != (err == nil) || err != nil && (!errors.Is(err, systemd.ErrUnitExists) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", c.name, err)
		}
		if n := f.called("ResetFailedUnit"); n != c.reset {
			t.Errorf("%s: reset %d times, want %d", c.name, n, c.reset)
		}
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
