package plan

import (
	"errors"
	"path"

	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/engine/spec"
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
	// Devices is what may be accessed; nil where the caller cannot limit that.
	Devices *device.Policy
	// DevicesAt has the config entry of each rule, by Rule.Index: "" for what every container has.
	DevicesAt []string
	// Delegate hands the cgroup to the container's user, as the specification
	// has it: where v2 has all controllers, in a new cgroup namespace, with a
	// writable mount of it.
	Delegate bool
	At       string
}

// ResourcesAt is the entry of the config that the limits are in.
const ResourcesAt = "/linux/resources"

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
	case o.Placed != nil:
		p.Cgroup.Path = o.Placed.Path
	case linux.CgroupsPath == "":
		p.Cgroup.Path = path.Join(parent(h, o, DefaultParent), o.ID)
	case path.IsAbs(linux.CgroupsPath):
		p.Cgroup.Path = path.Clean(linux.CgroupsPath)
	default:
		// The same place for every caller of a user: below one parent.
		p.Cgroup.Path = path.Join(parent(h, o, ""), path.Clean("/"+linux.CgroupsPath))
	}
	if linux.CgroupsPath == "" {
		p.Cgroup.At = ""
	}
	var problems []spec.Complaint
	if linux.Resources != nil {
		writes, warnings, err := ledger.Translate(linux.Resources, h.Layout, ledger.Options{})
		p.Cgroup.Writes = writes
		for _, w := range warnings {
			p.Warnings = append(p.Warnings, ResourcesAt+w.String())
		}
		problems = fieldErrors(err)
	}
	return append(problems, p.planDevices(linux, h.UID != 0 || h.InUserNS)...)
}

// Placed is where a container is that has been made already.
type Placed struct {
	Path string
	Unit string // "" where systemd did not make it
}

// DefaultParent is the cgroup of containers that name no place of their own, where systemd does not
// make it: never the root, which belongs to the init system.
const DefaultParent = "/berth"

// parent is the cgroup below which a path begins that is not absolute. The host's setting is for
// its root: what is delegated to an ordinary user, or to the service that we are in, is a place
// already, in which containers without a path have one of their own.
func parent(h *host.Host, o Options, own string) string {
	switch {
	case h.CgroupBase != "" && h.CgroupBase != "/":
		return path.Join(h.CgroupBase, own)
	case o.Parent != "":
		return o.Parent
	}
	return DefaultParent
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

// DeviceRules are the rules for devices of a container, with the pointer of each ("" for what every
// container has). What no rule allows is denied.
func DeviceRules(linux *specs.Linux) (rules []specs.LinuxDeviceCgroup, at []string) {
	var own []specs.LinuxDeviceCgroup
	if linux.Resources != nil {
		own = linux.Resources.Devices
	}
	return device.ForContainer(linux.Devices, own)
}

func (p *Plan) planDevices(linux *specs.Linux, ordinaryUser bool) []spec.Complaint {
	own := linux.Resources != nil && len(linux.Resources.Devices) > 0
	if ordinaryUser {
		// Device filters take rights of the initial user namespace, and without them
		// there is nothing to filter: another makes no device nodes, and those of the
		// host have an owner.
		if own {
			p.Warnings = append(p.Warnings, ResourcesAt+"/devices: left out, an ordinary user cannot limit access to devices; the permissions of the nodes do")
		}
		return nil
	}
	rules, at := DeviceRules(linux)
	policy, err := device.Fold(rules)
	p.Cgroup.Devices, p.Cgroup.DevicesAt = &policy, at
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
		return []spec.Complaint{{Pointer: ResourcesAt, Message: err.Error()}}
	}
	complaints := make([]spec.Complaint, len(list))
	for i, e := range list {
		complaints[i] = spec.Complaint{Pointer: ResourcesAt + e.Pointer, Message: e.Message, Hint: e.Hint}
	}
	return complaints
}
