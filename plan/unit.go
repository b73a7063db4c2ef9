package plan

import (
	"encoding/hex"
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
	"github.com/berth-runtime/berth/host"
	"github.com/berth-runtime/berth/spec"
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

// Annotations of the config that say more of the unit.
const (
	// MachinedAnnotation registers the container with systemd-machined.
	MachinedAnnotation = "run.berth.machined"
	// SubgroupAnnotation puts the processes into a cgroup of this name inside of
	// the unit's own, as crun does.
	SubgroupAnnotation = "run.oci.systemd.subgroup"
)

// payloadInSlice is where the processes are when the unit is a slice. Slices
// cannot be delegated, and one with processes of its own could have no units.
const payloadInSlice = "payload"

// planUnit plans the unit instead of a cgroup.
func (p *Plan) planUnit(linux *specs.Linux, h *host.Host, o Options) []spec.Complaint {
	if h.Systemd == nil {
		return []spec.Complaint{{Pointer: "/linux/cgroupsPath", Message: "the systemd driver is asked for, and no systemd is known",
			Hint: "leave --systemd-cgroup out where systemd does not run"}}
	}
	s := h.Systemd
	layout := UnitLayout(h)
	place, err := unit.Resolve(linux.CgroupsPath, o.ID, s.User && h.Cgroups.Mode() == cgroup.Unified)
	at := "/linux/cgroupsPath"
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
	p.Cgroup.Delegate = p.delegates(h)
	// Of the host's version, also where a user's manager has none of its controllers.
	u.Properties = ledger.Accounting(h.Layout)
	problems := p.planSubgroup(place)
	problems = append(problems, p.planUnitLimits(linux.Resources, layout)...)
	u.Annotations, err = unit.Annotations(p.Annotations)
	problems = append(problems, annotationErrors(err)...)
	return append(problems, p.planMachine()...)
}

// UnitLayout is the layout as the units of the host's systemd see it.
func UnitLayout(h *host.Host) ledger.Layout {
	layout := h.Layout
	layout.Systemd = h.Systemd.Version
	if h.Systemd.User {
		// Nobody delegates controllers of version 1 to ordinary users: their
		// manager would take the properties and do nothing.
		layout.Legacy = nil
		layout.Unified = h.Systemd.Controllers
	}
	return layout
}

// UnitDescription is what the unit of a container is called for people, and by
// what a later command knows it as ours.
func UnitDescription(id string) string { return "berth container " + id }

// planUnitLimits divides the resources into properties and files.
func (p *Plan) planUnitLimits(res *specs.LinuxResources, layout ledger.Layout) []spec.Complaint {
	if res == nil {
		return nil
	}
	u := p.Cgroup.Unit
	properties, writes, warnings, err := ledger.Properties(res, layout, ledger.Options{Slice: u.IsSlice()})
	for _, property := range properties {
		property.Pointer = resourcesAt + property.Pointer
		u.Properties = append(u.Properties, property)
	}
	p.Cgroup.Writes = writes
	for _, w := range warnings {
		p.Warnings = append(p.Warnings, resourcesAt+w.String())
	}
	problems := append(fieldErrors(err), p.planDevices(res.Devices, u.Systemd.User)...)
	if p.Cgroup.Devices != nil {
		u.DevicePolicy, u.DeviceAllow = p.Cgroup.Devices.Systemd(u.Systemd.Devices, u.Systemd.Version)
	}
	return problems
}

func (p *Plan) planSubgroup(place unit.Place) []spec.Complaint {
	if place.IsSlice() {
		p.Cgroup.Payload = payloadInSlice
	}
	name, ok := p.Annotations[SubgroupAnnotation]
	if !ok || name == "" {
		return nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return []spec.Complaint{{Pointer: spec.Join("/annotations", SubgroupAnnotation), Message: strconv.Quote(name) + " is no name of a cgroup below the unit's",
				Hint: "names with a slash between them, none of them empty, . or .."}}
		}
	}
	p.Cgroup.Payload = name
	return nil
}

// planMachine plans what systemd-machined is told.
func (p *Plan) planMachine() []spec.Complaint {
	at := spec.Join("/annotations", MachinedAnnotation)
	switch value := p.Annotations[MachinedAnnotation]; value {
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
				return []spec.Complaint{{Pointer: "/process/env/" + strconv.Itoa(i), Message: "container_uuid=" + id + " is no machine id", Hint: "32 hexadecimal digits, with or without dashes"}}
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

// steps tells the unit in words.
func (u *Unit) steps(p *Plan) []Step {
	which := "systemd " + strconv.Itoa(u.Systemd.Version)
	if u.Systemd.User {
		which = "the user's " + which
	}
	if u.Systemd.Assumed != "" {
		which += " (" + u.Systemd.Assumed + ")"
	}
	steps := []Step{
		{"let " + which + " start the unit " + u.Unit + " in " + u.Slice, p.Cgroup.At},
		{"property Description=" + u.Description, ""},
	}
	if u.IsSlice() {
		steps = append(steps, Step{"property Wants=" + u.Slice, p.Cgroup.At})
	} else {
		steps = append(steps, Step{"property Slice=" + u.Slice, p.Cgroup.At}, Step{"property Delegate=true", ""})
	}
	steps = append(steps, Step{"property DefaultDependencies=false", ""})
	for _, property := range u.Properties {
		what := "property " + property.Name + "=" + ledger.FormatValue(property.Value)
		if property.Note != "" {
			what += " (" + property.Note + ")"
		}
		steps = append(steps, Step{what, property.Pointer})
	}
	if u.DevicePolicy != "" {
		steps = append(steps, Step{"property DevicePolicy=" + u.DevicePolicy, resourcesAt + "/devices"})
	}
	for _, d := range u.DeviceAllow {
		steps = append(steps, Step{"property DeviceAllow=" + d.Path + " " + d.Access, resourcesAt + "/devices"})
	}
	for _, a := range u.Annotations {
		steps = append(steps, Step{"property " + a.Name + "=" + p.Annotations[a.Annotation], spec.Join("/annotations", a.Annotation)})
	}
	return steps
}
