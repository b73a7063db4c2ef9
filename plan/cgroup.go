package plan

import (
	"errors"
	"path"

	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/host"
	"github.com/berth-runtime/berth/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Cgroup says where the container's processes go and what is set there.
type Cgroup struct {
	// None leaves the container where its caller is.
	None bool
	Path string // below the root of each hierarchy
	// Payload is a cgroup below Path where the processes are, "" for Path itself.
	Payload string
	// Unit is what systemd is asked for; nil where it is not to make the cgroup.
	Unit   *Unit
	Writes []ledger.Write
	// Devices is what may be accessed; nil changes nothing.
	Devices *device.Policy
	At      string
}

const resourcesAt = "/linux/resources"

func (p *Plan) planCgroup(linux *specs.Linux, h *host.Host, o Options) []spec.Complaint {
	p.Cgroup = Cgroup{None: o.NoCgroup}
	if o.NoCgroup {
		return nil
	}
	if o.SystemdCgroup {
		return p.planUnit(linux, h, o)
	}
	// A relative path is taken below the root of each hierarchy as well, so that
	// the same config means the same place whoever calls.
	p.Cgroup.Path, p.Cgroup.At = path.Clean("/"+linux.CgroupsPath), "/linux/cgroupsPath"
	if linux.CgroupsPath == "" {
		p.Cgroup.Path, p.Cgroup.At = "/berth-"+o.ID, ""
	}
	if linux.Resources == nil {
		return nil
	}
	writes, warnings, err := ledger.Translate(linux.Resources, h.Layout, ledger.Options{})
	p.Cgroup.Writes = writes
	for _, w := range warnings {
		p.Warnings = append(p.Warnings, resourcesAt+w.String())
	}
	return append(fieldErrors(err), p.planDevices(linux.Resources.Devices)...)
}

// planDevices folds the device rules, with those for what every container has.
func (p *Plan) planDevices(rules []specs.LinuxDeviceCgroup) []spec.Complaint {
	if len(rules) == 0 {
		return nil
	}
	policy, err := device.Fold(append(rules[:len(rules):len(rules)], device.Defaults()...))
	p.Cgroup.Devices = &policy
	return fieldErrors(err)
}

// fieldErrors makes complaints of the ledger's errors, whose pointers begin at
// the resources object.
func fieldErrors(err error) []spec.Complaint {
	if err == nil {
		return nil
	}
	var list ledger.Errors
	if !errors.As(err, &list) {
		return []spec.Complaint{{Pointer: resourcesAt, Message: err.Error()}}
	}
	complaints := make([]spec.Complaint, len(list))
	for i, e := range list {
		complaints[i] = spec.Complaint{Pointer: resourcesAt + e.Pointer, Message: e.Message, Hint: e.Hint}
	}
	return complaints
}
