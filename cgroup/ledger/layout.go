package ledger

import "slices"

// Layout is what a translation has to know of the host.
type Layout struct {
	// Unified are the controllers on the v2 hierarchy. It is nil where no v2
	// hierarchy is mounted, and empty but not nil on a hybrid host where
	// every controller is on v1.
	Unified []string
	// Legacy are the controllers on v1 hierarchies.
	Legacy []string
	// Systemd is the version of the systemd that manages the units, 0 where
	// there is none.
	Systemd int
	// Files says whether the cgroup has the file of the controller; for the
	// files that belong to no controller ("cgroup.max.depth") the controller
	// is "cgroup". With nil, the first choice of each field is taken to be
	// there, and second choices become optional writes.
	Files func(controller, name string) bool
	// Absent says that the cgroup isn't in the hierarchy of a controller, where Files can but say
	// that a file is missing. It may be nil.
	Absent func(controller string) bool
}

// Named gives the layouts that systemd sets up on an ordinary machine:
// "legacy", "hybrid" and "unified".
func Named(name string, systemd int) (Layout, bool) {
	v1 := []string{"blkio", "cpu", "cpuacct", "cpuset", "devices", "freezer", "hugetlb",
		"memory", "misc", "net_cls", "net_prio", "perf_event", "pids", "rdma"}
	switch name {
	case "legacy":
		return Layout{Legacy: v1, Systemd: systemd}, true
	case "hybrid":
		return Layout{Legacy: v1, Unified: []string{}, Systemd: systemd}, true
	case "unified":
		return Layout{Unified: []string{"cpu", "cpuset", "dmem", "hugetlb", "io", "memory", "misc",
			"pids", "rdma"}, Systemd: systemd}, true
	}
	return Layout{}, false
}

func (l Layout) onV2(controller string) bool { return slices.Contains(l.Unified, controller) }
func (l Layout) onV1(controller string) bool { return slices.Contains(l.Legacy, controller) }

// Options steer a translation.
type Options struct {
	// Shares is the formula for CPU shares on v2.
	Shares SharesFormula
	// Present reads a file of the cgroup as it is now, without the newline
	// at its end. It is nil for a cgroup that is still to be made, which has
	// the kernel's defaults. With it, a field that is set alone keeps its
	// partner (period and quota, swap and limit), and writes come in the
	// order in which the kernel takes them.
	Present func(controller, file string) (string, bool)
	// Slice is set where the unit is a slice, which has fewer properties
	// than a scope.
	Slice bool
}

// Write is one value for one file.
type Write struct {
	Controller string
	V2         bool
	File       string
	Value      string
	// Pointer is the entry that asks for it, below the resources object.
	Pointer string
	// Note says which conversion made the value, for a human. It is empty
	// where the value went through as it was.
	Note string
	// Optional writes are skipped where the file does not exist, and may
	// fail with EOPNOTSUPP.
	Optional bool
	// ReadBack marks values that the kernel rounds or clamps: read the file
	// after the write and ask Took.
	ReadBack bool
}

// Property is one property of a unit, typed for the bus: bool, string, uint64,
// []byte or []DeviceValue.
type Property struct {
	Name    string
	Value   any
	Pointer string
	Note    string
}

// DeviceValue is one element of the properties of D-Bus type a(st).
type DeviceValue struct {
	Path  string
	Value uint64
}

// Warning is something that was done otherwise than the words of the config
// say, or left out without harm.
type Warning struct {
	Pointer string
	Message string
}

func (w Warning) String() string { return w.Pointer + ": " + w.Message }
