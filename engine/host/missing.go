package host

import (
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/internal/caps"
)

// Missing lists what a host has not that others have, in words.
func Missing(h *Host, groups *cgroup.Host) []string {
	var list []string
	add := func(lacks bool, what string) {
		if lacks {
			list = append(list, what)
		}
	}
	unified := groups.Unified()
	add(unified == nil, "cgroup v2")
	for _, controller := range [...]string{"cpu", "cpuset", "io", "memory", "pids", "hugetlb"} {
		v1 := controller
		if v1 == "io" {
			v1 = "blkio"
		}
		has := groups.Controller(v1) != nil || unified != nil && slices.Contains(h.Layout.Unified, controller)
		add(!has, "the cgroup controller "+controller)
	}
	add(h.NoMountSetattr, "mount_setattr(2)")
	add(h.Landlock == 0, "Landlock")
	add(h.InUserNS, "the rights of the initial user namespace")
	if lacks := (h.Lacks & (1<<(caps.Last+1) - 1)).Names(); len(lacks) > 0 {
		add(true, strings.Join(lacks, ", "))
	}
	return list
}
