package cgroup

import (
	"slices"
	"strings"

	"github.com/berth-runtime/berth/internal/proc/mountinfo"
)

// Hierarchy is one tree of cgroups: the version 2 one, or a version 1 one with
// its controllers, or a version 1 one with a name and no controller.
type Hierarchy struct {
	Version     int
	Controllers []string // on version 2: those that are not on version 1
	Name        string   // of a named version 1 hierarchy, as "systemd"
	Mountpoint  string
	// Root is the part of the hierarchy that is mounted, as this process's
	// cgroup namespace names it: "/" but for bind mounts and containers that
	// share the host's namespace; "/.." and up if it lies above the namespace.
	Root     string
	NoPrefix bool // files lack their controller's name, as "cpus" for "cpuset.cpus"
	ReadOnly bool

	dir string // the mount point as this process opens it
}

// String names the hierarchy as /proc/self/cgroup does, and version 2 "unified": a name
// that Only and Group.Directory take.
func (h *Hierarchy) String() string {
	switch {
	case h.Version == 2:
		return "unified"
	case h.Name != "" && len(h.Controllers) == 0:
		return "name=" + h.Name
	case h.Name != "":
		return strings.Join(h.Controllers, ",") + ",name=" + h.Name
	}
	return strings.Join(h.Controllers, ",")
}

// Has reports whether the controller lives in this hierarchy.
func (h *Hierarchy) Has(controller string) bool {
	return slices.Contains(h.Controllers, controller)
}

// holds reports whether this is the hierarchy that /proc/PID/cgroup names by its controllers, or by
// "name=" and its name.
func (h *Hierarchy) holds(names string) bool {
	if names == "" {
		return h.Version == 2
	}
	for name := range strings.SplitSeq(names, ",") {
		if named, ok := strings.CutPrefix(name, "name="); ok && h.Name != named || !ok && !h.Has(name) {
			return false
		}
	}
	return h.Version == 1
}

// file gives a controller's file the name that it has here.
func (h *Hierarchy) file(name string) string {
	if !h.NoPrefix || strings.HasPrefix(name, "cgroup.") {
		return name
	}
	if _, rest, found := strings.Cut(name, "."); found {
		return rest
	}
	return name
}

// isLegacyController tells the controllers among the options of a version 1
// superblock from its flags (xattr, noprefix, clone_children, release_agent=…,
// cpuset_v2_mode, favordynmods, seclabel). Version 1 gets no new ones.
func isLegacyController(option string) bool {
	switch option {
	case "cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids",
		"net_cls", "net_prio", "perf_event", "hugetlb", "rdma", "misc", "dmem", "debug":
		return true
	}
	return false
}

// hierarchyOf turns a mount into the hierarchy it shows.
func hierarchyOf(m mountinfo.Entry) Hierarchy {
	h := Hierarchy{Version: 1, Mountpoint: m.Point, Root: m.Root, ReadOnly: mountinfo.HasOption(m.Options, "ro")}
	if m.Type == "cgroup2" {
		h.Version = 2
		return h
	}
	for option := range strings.SplitSeq(m.Super, ",") {
		switch {
		case isLegacyController(option):
			h.Controllers = append(h.Controllers, option)
		case option == "noprefix":
			h.NoPrefix = true
		case option == "ro":
			h.ReadOnly = true
		case strings.HasPrefix(option, "name="):
			h.Name = option[len("name="):]
		}
	}
	return h
}

// preferable reports whether a is a better view of the same hierarchy than b:
// writable before read-only, the whole before a part, the larger part before the smaller.
func preferable(a, b *Hierarchy) bool {
	if a.ReadOnly != b.ReadOnly {
		return b.ReadOnly
	}
	if (a.Root == "/") != (b.Root == "/") {
		return a.Root == "/"
	}
	return len(a.Root) < len(b.Root)
}
