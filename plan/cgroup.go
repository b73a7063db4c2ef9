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
	// Delegate hands the cgroup to the container's user, as the specification
	// has it: where v2 has all controllers, in a new cgroup namespace, with a
	// writable mount of it.
	Delegate bool
	At       string
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
	p.Cgroup.Delegate = p.delegates(h)
	p.Cgroup.At = "/linux/cgroupsPath"
	switch {
	case linux.CgroupsPath == "":
		p.Cgroup.Path, p.Cgroup.At = path.Join("/", h.CgroupBase, "berth-"+o.ID), ""
	case path.IsAbs(linux.CgroupsPath):
		p.Cgroup.Path = path.Clean(linux.CgroupsPath)
	default:
		// The same place whoever calls: below the root of each hierarchy, or below
		// what an ordinary user has been handed.
		p.Cgroup.Path = path.Join("/", h.CgroupBase, path.Clean("/"+linux.CgroupsPath))
	}
	if linux.Resources == nil {
		return nil
	}
	writes, warnings, err := ledger.Translate(linux.Resources, h.Layout, ledger.Options{})
	p.Cgroup.Writes = writes
	for _, w := range warnings {
		p.Warnings = append(p.Warnings, resourcesAt+w.String())
	}
	return append(fieldErrors(err), p.planDevices(linux.Resources.Devices, h.UID != 0 || h.InUserNS)...)
}

// delegates says whether the container's user gets the cgroup (config-linux.md,
// "Cgroup ownership").
func (p *Plan) delegates(h *host.Host) bool {
	if h.Layout.Unified == nil || len(h.Layout.Legacy) > 0 || !p.Makes(specs.CgroupNamespace) {
		return false
	}
	for i := range p.Mounts {
		if m := &p.Mounts[i]; m.Cgroup && m.Source == "cgroup" && m.Destination == "/sys/fs/cgroup" {
			return !m.ReadOnly()
		}
	}
	return false
}

// planDevices folds the device rules, with those for what every container has.
func (p *Plan) planDevices(rules []specs.LinuxDeviceCgroup, ordinaryUser bool) []spec.Complaint {
	if len(rules) == 0 {
		return nil
	}
	policy, err := device.Fold(device.WithDefaults(rules))
	if ordinaryUser {
		// Device filters take rights of the initial user namespace, and without them
		// there is nothing to filter: another makes no device nodes, and those of the
		// host have an owner.
		p.Warnings = append(p.Warnings, resourcesAt+"/devices: left out, an ordinary user cannot limit access to devices; the permissions of the nodes do")
	} else {
		p.Cgroup.Devices = &policy
	}
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
