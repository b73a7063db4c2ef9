package view

import (
	"strconv"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/spec"
)

// UnitSteps tells the plan's systemd unit in words.
func UnitSteps(p *plan.Plan) []Step {
	u := p.Cgroup.Unit
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
		steps = append(steps, Step{"property DevicePolicy=" + u.DevicePolicy, devicesAt(p)})
	}
	for _, d := range u.DeviceAllow {
		steps = append(steps, Step{"property DeviceAllow=" + d.Path + " " + d.Access, ""})
	}
	for _, a := range u.Annotations {
		steps = append(steps, Step{"property " + a.Name + "=" + p.Annotations[a.Annotation], spec.Join("/annotations", a.Annotation)})
	}
	return steps
}
