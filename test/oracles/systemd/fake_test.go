package systemd_test

import (
	"fmt"
	"strings"
	"sync"

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

	// breakOn drops the connection when this method is called, breakMore times
	// more after the first; breakAfter carries the call out first.
	breakOn    string
	breakMore  int
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
