package metrics

import (
	"maps"
	"slices"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// or0 is a counter, or 0 where this host does not have it.
func or0(p *uint64) uint64 {
	if p == nil {
		return 0
	}
	return *p
}

// clamp fits a counter into 32 bits, no limit being the greatest number.
func clamp(p *uint64) uint32 {
	return uint32(min(or0(p), 1<<32-1))
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

// rdma is nil where there is no device.
func rdma(devices map[string]cgroup.RDMAStats) *wire.RdmaStat {
	if len(devices) == 0 {
		return nil
	}
	m := &wire.RdmaStat{}
	for _, name := range sortedKeys(devices) {
		d := devices[name]
		m.Current = append(m.Current, &wire.RdmaEntry{Device: name, HCAHandles: clamp(d.Handles.Usage), HCAObjects: clamp(d.Objects.Usage)})
		m.Limit = append(m.Limit, &wire.RdmaEntry{Device: name, HCAHandles: clamp(d.Handles.Limit), HCAObjects: clamp(d.Objects.Limit)})
	}
	return m
}
