package container

import (
	"maps"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// mergeResources lays an update over the limits that a container has, as the
// cgroup files take it: what the update leaves out, or gives as 0 where that
// means nothing, stays. v2 says that memory is on cgroup v2.
func mergeResources(had, update *specs.LinuxResources, v2 bool) *specs.LinuxResources {
	var r specs.LinuxResources
	if had != nil {
		r = *had
	}
	if len(update.Devices) > 0 {
		r.Devices = update.Devices
	}
	if update.Memory != nil {
		r.Memory = mergeMemory(r.Memory, update.Memory, v2)
	}
	if update.CPU != nil {
		r.CPU = mergeCPU(r.CPU, update.CPU)
	}
	if update.Pids != nil && update.Pids.Limit != nil {
		r.Pids = update.Pids
	}
	if update.BlockIO != nil {
		r.BlockIO = mergeBlockIO(r.BlockIO, update.BlockIO)
	}
	r.HugepageLimits = mergeList(r.HugepageLimits, update.HugepageLimits, func(l specs.LinuxHugepageLimit) string { return l.Pagesize })
	if update.Network != nil {
		r.Network = mergeNetwork(r.Network, update.Network)
	}
	if len(update.Rdma) > 0 {
		r.Rdma = maps.Clone(r.Rdma)
		if r.Rdma == nil {
			r.Rdma = map[string]specs.LinuxRdma{}
		}
		for device, limit := range update.Rdma {
			now := r.Rdma[device]
			replace(&now.HcaHandles, limit.HcaHandles)
			replace(&now.HcaObjects, limit.HcaObjects)
			r.Rdma[device] = now
		}
	}
	if len(update.Unified) > 0 {
		r.Unified = maps.Clone(r.Unified)
		if r.Unified == nil {
			r.Unified = map[string]string{}
		}
		maps.Copy(r.Unified, update.Unified)
	}
	return &r
}

// replace takes over a value that is given.
func replace[T any](to **T, from *T) {
	if from != nil {
		*to = from
	}
}

// replaceSet is replace for values of which 0 means that nothing is said.
func replaceSet[T int64 | uint64 | uint16](to **T, from *T) {
	if from != nil && *from != 0 {
		*to = from
	}
}

func mergeMemory(had, update *specs.LinuxMemory, v2 bool) *specs.LinuxMemory {
	var m specs.LinuxMemory
	if had != nil {
		m = *had
	}
	before := m
	replaceSet(&m.Limit, update.Limit)
	replaceSet(&m.Reservation, update.Reservation)
	replaceSet(&m.Swap, update.Swap)
	replaceSet(&m.Kernel, update.Kernel) //lint:ignore SA1019 it is remembered as it was given
	replaceSet(&m.KernelTCP, update.KernelTCP)
	replace(&m.Swappiness, update.Swappiness)
	replace(&m.DisableOOMKiller, update.DisableOOMKiller)
	replace(&m.UseHierarchy, update.UseHierarchy)
	replace(&m.CheckBeforeUpdate, update.CheckBeforeUpdate)
	if m.Limit != nil && m.Limit == update.Limit && m.Swap != nil && m.Swap != update.Swap {
		m.Swap = swapWith(before.Limit, *before.Swap, *m.Limit, v2)
	}
	return &m
}

// swapWith is what limits memory and swap together when the limit of memory
// alone is changed. cgroup v1 keeps the sum; v2 keeps the part that is swap,
// which is all that its file knows of. Without a limit on memory there is none
// on the sum.
func swapWith(was *int64, swap, limit int64, v2 bool) *int64 {
	switch {
	case limit < 0 && swap != 0:
		swap = -1
	case v2 && swap > 0 && was != nil && *was > 0:
		swap += limit - *was
	}
	return &swap
}

func mergeCPU(had, update *specs.LinuxCPU) *specs.LinuxCPU {
	var c specs.LinuxCPU
	if had != nil {
		c = *had
	}
	replaceSet(&c.Shares, update.Shares)
	replaceSet(&c.Quota, update.Quota)
	replace(&c.Burst, update.Burst)
	replaceSet(&c.Period, update.Period)
	replace(&c.RealtimeRuntime, update.RealtimeRuntime)
	replaceSet(&c.RealtimePeriod, update.RealtimePeriod)
	replace(&c.Idle, update.Idle)
	if update.Cpus != "" {
		c.Cpus = update.Cpus
	}
	if update.Mems != "" {
		c.Mems = update.Mems
	}
	return &c
}

func mergeBlockIO(had, update *specs.LinuxBlockIO) *specs.LinuxBlockIO {
	var b specs.LinuxBlockIO
	if had != nil {
		b = *had
	}
	replaceSet(&b.Weight, update.Weight)
	replaceSet(&b.LeafWeight, update.LeafWeight)
	b.WeightDevice = mergeList(b.WeightDevice, update.WeightDevice, func(d specs.LinuxWeightDevice) [2]int64 { return [2]int64{d.Major, d.Minor} })
	device := func(d specs.LinuxThrottleDevice) [2]int64 { return [2]int64{d.Major, d.Minor} }
	b.ThrottleReadBpsDevice = mergeList(b.ThrottleReadBpsDevice, update.ThrottleReadBpsDevice, device)
	b.ThrottleWriteBpsDevice = mergeList(b.ThrottleWriteBpsDevice, update.ThrottleWriteBpsDevice, device)
	b.ThrottleReadIOPSDevice = mergeList(b.ThrottleReadIOPSDevice, update.ThrottleReadIOPSDevice, device)
	b.ThrottleWriteIOPSDevice = mergeList(b.ThrottleWriteIOPSDevice, update.ThrottleWriteIOPSDevice, device)
	return &b
}

func mergeNetwork(had, update *specs.LinuxNetwork) *specs.LinuxNetwork {
	var n specs.LinuxNetwork
	if had != nil {
		n = *had
	}
	replace(&n.ClassID, update.ClassID)
	n.Priorities = mergeList(n.Priorities, update.Priorities, func(p specs.LinuxInterfacePriority) string { return p.Name })
	return &n
}

// mergeList replaces the entries of the same key, and adds the others.
func mergeList[T any, K comparable](had, update []T, key func(T) K) []T {
	if len(update) == 0 {
		return had
	}
	list := slices.Clone(had)
	for _, u := range update {
		if i := slices.IndexFunc(list, func(t T) bool { return key(t) == key(u) }); i >= 0 {
			list[i] = u
		} else {
			list = append(list, u)
		}
	}
	return list
}
