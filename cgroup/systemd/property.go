package systemd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
)

// Property is a property of a unit.
type Property struct {
	Name string
	// Value is one of the types that systemd's properties have: bool, string, a
	// number of a fixed size, []string, []byte, []uint32, []ledger.DeviceValue,
	// []device.Allowed; any D-Bus type as a gvariant.Value; or what Present gave.
	Value any
	// Source is the entry of the config that it comes from: a JSON pointer
	// or the key of an annotation. It is empty where there is none.
	Source string
}

func plainProperty(name string, value any) Property {
	return Property{Name: name, Value: value}
}

// Base gives what a unit has whatever its config says. A scope is placed by its
// Slice= and is delegated, so that what is in the container can have cgroups of
// its own; a slice, which can be neither, wants its parent.
//
// Processes can be put into a scope only, and into one they must be: systemd
// does not start an empty one.
func Base(p unit.Place, description string, pids ...int) []Property {
	properties := []Property{
		plainProperty("Description", description),
		// Not stopped by a shutdown before those that use the container.
		plainProperty("DefaultDependencies", false),
	}
	if p.IsSlice() {
		return append(properties, plainProperty("Wants", []string{p.Slice}))
	}
	list := make([]uint32, len(pids))
	for i, pid := range pids {
		list[i] = uint32(pid)
	}
	return append(properties,
		plainProperty("Slice", p.Slice),
		plainProperty("Delegate", true),
		plainProperty("PIDs", list))
}

// Resources gives the properties that the ledger made of resources.
func Resources(list []ledger.Property) []Property {
	properties := make([]Property, len(list))
	for i, p := range list {
		properties[i] = Property{p.Name, p.Value, p.Pointer}
	}
	return properties
}

// Annotations gives the properties that annotations ask for.
func Annotations(list []unit.Property) []Property {
	properties := make([]Property, len(list))
	for i, p := range list {
		properties[i] = Property{p.Name, p.Value, p.Annotation}
	}
	return properties
}

// Devices gives the properties for a device policy. DeviceAllow adds to what
// the unit has, so an empty one comes first, which clears it.
func Devices(policy string, allow []device.Allowed) []Property {
	const source = "/devices"
	properties := []Property{
		{"DevicePolicy", policy, source},
		{"DeviceAllow", []device.Allowed{}, source},
	}
	if len(allow) > 0 {
		properties = append(properties, Property{"DeviceAllow", allow, source})
	}
	return properties
}

// Override puts the second list behind the first, without those of the first
// that the second has too: a config's annotations win.
func Override(properties, by []Property) []Property {
	var all []Property
	for _, p := range properties {
		if !slices.ContainsFunc(by, func(q Property) bool { return q.Name == p.Name }) {
			all = append(all, p)
		}
	}
	return append(all, by...)
}

// wire gives the a(sv) of the bus.
func wire(properties []Property) ([]any, error) {
	list := make([]any, len(properties))
	for i, p := range properties {
		v, err := variant(p.Value)
		if err != nil {
			return nil, fmt.Errorf("property %s: %w", p.Name, err)
		}
		list[i] = []any{p.Name, v}
	}
	return list, nil
}

// blame finds the property that systemd's words are about, and gives its source.
// Of a value with the wrong type systemd does not say whose it is; then all the
// annotations are named, because the types of the others are ours.
func blame(err error, properties []Property) string {
	for _, p := range properties {
		if p.Source != "" && hasWord(err.Error(), p.Name) {
			return source(p)
		}
	}
	if !isNamed(err, "org.freedesktop.DBus.Error.InvalidArgs", "org.freedesktop.DBus.Error.InconsistentMessage",
		"org.freedesktop.DBus.Error.PropertyReadOnly", "org.freedesktop.DBus.Error.UnknownProperty", "System.Error.ENXIO", "System.Error.EINVAL") {
		return ""
	}
	var all []string
	for _, p := range properties {
		if p.Source != "" && !strings.HasPrefix(p.Source, "/") {
			all = append(all, p.Source)
		}
	}
	switch len(all) {
	case 0:
		return ""
	case 1:
		return "annotation " + all[0]
	}
	return "one of the annotations " + strings.Join(all, ", ")
}

func source(p Property) string {
	if strings.HasPrefix(p.Source, "/") {
		return p.Source
	}
	return "annotation " + p.Source
}

// hasWord says whether a text has a name that is not a part of a longer one.
func hasWord(text, name string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		at += i
		end := at + len(name)
		if (at == 0 || !isNameByte(text[at-1])) && (end == len(text) || !isNameByte(text[end])) {
			return true
		}
		at = end
	}
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
