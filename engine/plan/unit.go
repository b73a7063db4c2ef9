package plan

import (
	"encoding/hex"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/engine/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Unit is the systemd unit that a container becomes.
type Unit struct {
	unit.Place
	Description string
	// Properties are the accounting and the limits; their pointers begin at the
	// root of the config.
	Properties []ledger.Property
	// DevicePolicy is "" where systemd is to know nothing of devices.
	DevicePolicy string
	DeviceAllow  []device.Allowed
	// Annotations are the properties that the config asks for by name. They win.
	Annotations []unit.Property
	// Machine is how systemd-machined is to know the container; nil for not at all.
	Machine *Machine
	Systemd *host.Systemd
}

// Machine is a container as systemd-machined knows it.
type Machine struct {
	Name string
	ID   [16]byte
	At   string
}

// payloadInSlice is where the processes are when the unit is a slice. Slices
// cannot be delegated, and one with processes of its own could have no units.
const payloadInSlice = "payload"

// planUnit plans the unit instead of a cgroup.
func (p *Plan) planUnit(linux *specs.Linux, h *host.Host, o Options) []spec.Complaint {
	if h.Systemd == nil {
		return []spec.Complaint{{Pointer: "/linux/cgroupsPath", Message: "the systemd driver is asked for, and no systemd is known",
			Hint: "omit --systemd-cgroup if systemd does not run"}}
	}
	s := h.Systemd
	at := "/linux/cgroupsPath"
	place, err := unitPlace(linux.CgroupsPath, h, o)
	if err != nil {
		return []spec.Complaint{{Pointer: at, Message: err.Error()}}
	}
	below, err := place.Path()
	if err != nil {
		return []spec.Complaint{{Pointer: at, Message: err.Error()}}
	}
	if linux.CgroupsPath == "" {
		at = ""
	}
	u := &Unit{Place: place, Systemd: s, Description: UnitDescription(o.ID)}
	p.Cgroup.Unit, p.Cgroup.At = u, at
	p.Cgroup.Path = path.Join(s.Root, below)
	if o.Placed != nil {
		p.Cgroup.Path = o.Placed.Path
	}
	p.Cgroup.Delegate = p.delegates(h)
	// Of the host's version, also where a user's manager has none of its controllers.
	u.Properties = ledger.Accounting(h.Layout)
	problems := p.planSubgroup(place)
	problems = append(problems, p.planUnitLimits(linux, h)...)
	u.Annotations, err = unit.Annotations(p.Annotations)
	problems = append(problems, annotationErrors(err)...)
	// An annotation wins over the field, also in the file.
	p.Cgroup.Writes = slices.DeleteFunc(p.Cgroup.Writes, func(w ledger.Write) bool {
		return slices.ContainsFunc(u.Annotations, func(a unit.Property) bool { return w.Carries(a.Name) })
	})
	return append(problems, p.planMachine()...)
}

// unitPlace is the unit that the config names, or the one below the host's parent.
func unitPlace(cgroupsPath string, h *host.Host, o Options) (unit.Place, error) {
	rootless := h.Systemd.User && h.Unified
	switch {
	case o.Placed != nil && o.Placed.Unit != "":
		// The parent may be another one now.
		slice := path.Base(path.Dir(o.Placed.Path))
		if !strings.HasSuffix(slice, ".slice") {
			slice = "-.slice"
		}
		return unit.Place{Slice: slice, Unit: o.Placed.Unit}, nil
	case cgroupsPath == "":
		return unit.Below(UnitParent(h.Systemd.User, o.Parent), unitPrefix, o.ID)
	case o.PathNamesUnit && !path.IsAbs(cgroupsPath) && strings.Count(cgroupsPath, ":") != 2:
		return unit.Below(UnitParent(h.Systemd.User, o.Parent), unitPrefix, cgroupsPath)
	}
	return unit.Resolve(cgroupsPath, o.ID, rootless)
}

// unitPrefix begins the names of our scopes.
const unitPrefix = "berth"

// UnitParent is the path of the slice of containers that name none. The host's setting is of the
// system's slices; a user's manager has a tree of its own, with its units in user.slice.
func UnitParent(user bool, setting string) string {
	switch {
	case user:
		return "/user"
	case setting != "":
		return setting
	}
	return "/machine"
}

// UnitLayout is the layout as the units of the host's systemd see it.
func UnitLayout(h *host.Host) ledger.Layout {
	layout := h.Layout
	layout.Systemd = h.Systemd.Version
	if h.Systemd.User {
		// Controllers of version 1 are not delegated to ordinary users: their
		// manager would take the properties and do nothing.
		layout.Legacy = nil
		layout.Unified = h.Systemd.Controllers
	}
	return layout
}

// UnitDescription is what the unit of a container is called for people, and by
// what a later command knows it as ours.
func UnitDescription(id string) string { return "berth container " + id }

// planUnitLimits makes properties of the resources, and the writes that come after them.
func (p *Plan) planUnitLimits(linux *specs.Linux, h *host.Host) []spec.Complaint {
	u := p.Cgroup.Unit
	var problems []spec.Complaint
	if linux.Resources != nil {
		properties, writes, warnings, err := ledger.Properties(linux.Resources, UnitLayout(h), ledger.Options{Slice: u.IsSlice()})
		for _, property := range properties {
			property.Pointer = ResourcesAt + property.Pointer
			u.Properties = append(u.Properties, property)
		}
		p.Cgroup.Writes = writes
		for _, w := range warnings {
			p.Warnings = append(p.Warnings, ResourcesAt+w.String())
		}
		problems = fieldErrors(err)
	}
	problems = append(problems, p.planDevices(linux, u.Systemd.User || h.InUserNS)...)
	if p.Cgroup.Devices != nil {
		u.DevicePolicy, u.DeviceAllow = p.Cgroup.Devices.Systemd(u.Systemd.Devices, u.Systemd.Version)
	}
	return problems
}

func (p *Plan) planSubgroup(place unit.Place) []spec.Complaint {
	if place.IsSlice() {
		p.Cgroup.Payload = payloadInSlice
	}
	name, ok := p.Annotations[spec.SubgroupAnnotation]
	if !ok || name == "" {
		return nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return []spec.Complaint{{Pointer: spec.Join("/annotations", spec.SubgroupAnnotation), Message: strconv.Quote(name) + " is not the name of a cgroup below the unit's",
				Hint: "names with a slash between them, none of them empty, . or .."}}
		}
	}
	p.Cgroup.Payload = name
	return nil
}

// planMachine plans what systemd-machined is told.
func (p *Plan) planMachine() []spec.Complaint {
	at := spec.Join("/annotations", spec.MachinedAnnotation)
	switch value := p.Annotations[spec.MachinedAnnotation]; value {
	case "", "false":
		return nil
	case "true":
	default:
		return []spec.Complaint{{Pointer: at, Message: strconv.Quote(value) + " is neither true nor false"}}
	}
	if p.Cgroup.Unit.Systemd.User {
		return []spec.Complaint{{Pointer: at, Message: "systemd-machined knows machines of the system only, not of an ordinary user", Hint: "leave the annotation out"}}
	}
	m := &Machine{Name: p.ID, At: at}
	for i, e := range p.Process.Env {
		// The container interface of systemd: who makes the container says its
		// machine id by this variable.
		if id, ok := strings.CutPrefix(e, "container_uuid="); ok {
			raw, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
			if err != nil || len(raw) != len(m.ID) {
				return []spec.Complaint{{Pointer: "/process/env/" + strconv.Itoa(i), Message: "container_uuid=" + id + " is not a machine id", Hint: "32 hexadecimal digits, with or without dashes"}}
			}
			copy(m.ID[:], raw)
		}
	}
	p.Cgroup.Unit.Machine = m
	return nil
}

// annotationErrors makes complaints of the errors of unit.Annotations.
func annotationErrors(err error) []spec.Complaint {
	if err == nil {
		return nil
	}
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	}
	var complaints []spec.Complaint
	for _, one := range list {
		complaint := spec.Complaint{Pointer: "/annotations", Message: one.Error()}
		var wrong *unit.AnnotationError
		if errors.As(one, &wrong) {
			complaint.Pointer, complaint.Message = wrong.Pointer(), wrong.Err.Error()
		}
		complaints = append(complaints, complaint)
	}
	return complaints
}
