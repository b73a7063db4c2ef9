package systemd_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/godbus/dbus/v5"
)

// Listening anew for years does not use up the rules that the bus gives him.
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
		f.clients[0].mu.Lock()
		if !f.clients[0].wants {
			t.Error("systemd sends nothing to a bus on which nobody has subscribed")
		}
		f.clients[0].mu.Unlock()
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
	if err := m.Start(ctx, testPlace.Unit, testProperties()); err != nil {
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
	if err := m.Start(ctx, testPlace.Unit, before); err != nil {
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
