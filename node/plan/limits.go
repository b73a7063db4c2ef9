package plan

import (
	"strconv"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/internal/ptr"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/config/allocatable"
	"github.com/berth-runtime/berth/node/config/resource"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// share is what a role has of a resource; false where nothing is said of it.
func (p *Plan) share(role Role, r allocatable.Row) (int64, config.Amount, bool) {
	switch role {
	case System:
		a, ok := p.Config.SystemReserved[r.Name]
		return r.System, a, ok
	case Kube:
		a, ok := p.Config.KubeReserved[r.Name]
		return r.Kube, a, ok
	case Workloads:
		return r.Limit, config.Amount{Cause: p.Config.Cause("pods-enforce")}, true
	}
	return 0, config.Amount{}, false
}

// limit plans the limits of a cgroup.
func (p *Plan) limit(at Place, g Group) {
	if at.Enforce == config.Nothing {
		return
	}
	for _, r := range p.Resources {
		amount, from, ok := p.share(at.Role, r)
		if !ok {
			continue
		}
		var res specs.LinuxResources
		switch {
		case r.Name == resource.CPU:
			p.weight(&res, amount, r.Capacity)
		case at.Enforce == config.CPUOnly:
			continue
		case r.Name == resource.Memory:
			// The kernel counts whole pages, and would show another number.
			res.Memory = &specs.LinuxMemory{Limit: ptr.To(amount - amount%max(p.Facts.PageSize, 1))}
			if p.Config.Protect && at.Role != Workloads {
				p.protect(&res, *res.Memory.Limit)
			}
		case r.Name == resource.PIDs:
			res.Pids = &specs.LinuxPids{Limit: &amount}
		case r.Name.PageSize() > 0:
			if p.Driver == config.Systemd {
				if at.Role != Workloads || amount < r.Capacity {
					p.warn("%s: %s is not enforced on %s, since systemd has no property for it", from.Cause, r.Name, at.Slice)
				}
				continue
			}
			res.HugepageLimits = []specs.LinuxHugepageLimit{{Pagesize: pageSizeName(r.Name.PageSize()), Limit: uint64(amount)}}
		default:
			continue // the kernel has no limit of storage for a cgroup
		}
		p.resources(at, g, &res, from.Cause)
	}
}

// weight makes processor time proportional to the reservations: a processor is
// worth as much as a cgroup without a weight has, on either version. The
// formulas by which container runtimes turn shares into weights are not
// proportional, or make what has no weight worth two and a half processors. On
// machines of more than 100 processors (256 on version 1) all weights shrink, so
// that the largest fits the kernel's range.
func (p *Plan) weight(res *specs.LinuxResources, amount, capacity int64) {
	weight := scaled(amount, capacity, usualWeight, 10000, 1)
	switch {
	case version2(p.Facts.Layout, "cpu"):
		res.Unified = map[string]string{"cpu.weight": strconv.FormatInt(weight, 10)}
	case p.Driver == config.Systemd:
		// Of its CPUWeight, which property makes.
		res.CPU = &specs.LinuxCPU{Shares: ptr.To(uint64(max(weight*usualShares/usualWeight, 2)))}
	default:
		res.CPU = &specs.LinuxCPU{Shares: ptr.To(uint64(scaled(amount, capacity, usualShares, 262144, 2)))}
	}
}

// What a cgroup has without a weight.
const (
	usualWeight = 100
	usualShares = 1024
)

func scaled(amount, capacity, usual, greatest, least int64) int64 {
	whole := max(capacity, greatest/usual*1000)
	return max((amount*greatest+whole/2)/whole, least)
}

// property gives the one to set for another that the ledger names: on version 1
// systemd translates CPUWeight and MemoryMax too, and passes over CPUShares and
// MemoryLimit where those are set; from 258 on it knows no others.
func property(p ledger.Property) ledger.Property {
	switch p.Name {
	case "CPUShares":
		shares, _ := p.Value.(uint64)
		p.Name, p.Value = "CPUWeight", uint64((shares*usualWeight+usualShares-1)/usualShares)
	case "MemoryLimit":
		p.Name = "MemoryMax"
	}
	return p
}

func (p *Plan) protect(res *specs.LinuxResources, amount int64) {
	if !version2(p.Facts.Layout, "memory") {
		p.warn("%s: cgroup v1 can't protect memory from reclaim; it is only limited", p.Config.Cause("reserved-protect"))
		return
	}
	res.Unified = map[string]string{"memory.min": strconv.FormatInt(amount, 10)}
}

// pageSizeName is the size as the files of the hugetlb controller have it.
func pageSizeName(size int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"GB", 1 << 30}, {"MB", 1 << 20}} {
		if size >= u.size {
			return strconv.FormatInt(size/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(size>>10, 10) + "KB"
}

// resources turns resources into steps, by the ledger.
func (p *Plan) resources(at Place, g Group, res *specs.LinuxResources, cause string) {
	layout := p.Facts.Layout
	layout.Systemd = p.Facts.SystemdVersion
	writes, warnings, err := ledger.Translate(res, layout, ledger.Options{})
	var properties []ledger.Property
	if err == nil && p.Driver == config.Systemd {
		properties, _, warnings, err = ledger.Properties(res, layout, ledger.Options{Slice: true})
	}
	if err != nil {
		p.problem(cause, "%w", err)
		return
	}
	for _, w := range warnings {
		p.warn("%s: %s: %s", cause, at.Path, w.Message)
	}
	if p.Driver != config.Systemd {
		for _, w := range writes {
			if w.Optional && g.Files[w.File] == "" {
				continue // a file that newer kernels have besides
			}
			p.add(Step{Kind: SetFile, Target: at.Path, Name: w.File, Value: w.Value, Now: g.Files[w.File], FileNow: g.Files[w.File],
				Cause: cause, Group: at.Path, Write: &w, Memory: limitsMemory(w.File)})
		}
		return
	}
	for _, of := range properties {
		property := property(of)
		s := Step{Kind: SetProperty, Target: at.Slice, Name: property.Name, Value: PropertyValue(property.Value), Now: PropertyValue(g.Properties[property.Name]),
			Cause: cause, Group: at.Path, Property: &property}
		for _, w := range writes {
			if w.Pointer == property.Pointer {
				s.Write, s.FileNow, s.Memory = &w, g.Files[w.File], limitsMemory(w.File)
			}
		}
		p.add(s)
	}
}

func limitsMemory(file string) bool { return file == "memory.max" || file == "memory.limit_in_bytes" }
