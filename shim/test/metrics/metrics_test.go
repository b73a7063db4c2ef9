package metrics_test

import (
	"math"
	"reflect"
	"slices"
	"testing"

	cg1 "github.com/containerd/cgroups/v3/cgroup1/stats"
	cg2 "github.com/containerd/cgroups/v3/cgroup2/stats"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/metrics"
)

// numbers fills every number below v with another one, from 10000 on, and gives
// maps and slices one element.
func numbers(v reflect.Value, next *uint64) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		numbers(v.Elem(), next)
	case reflect.Struct:
		for i := range v.NumField() {
			numbers(v.Field(i), next)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		numbers(v.Index(0), next)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		element := reflect.New(v.Type().Elem()).Elem()
		numbers(element, next)
		key := reflect.New(v.Type().Key()).Elem()
		if key.Kind() == reflect.String {
			key.SetString("k")
		}
		v.SetMapIndex(key, element)
	case reflect.Uint64, reflect.Uint32:
		*next += 10000 // more than a thousand, which is what nanoseconds are divided by
		v.SetUint(*next)
	case reflect.Int:
		*next += 10000
		v.SetInt(int64(*next))
	case reflect.Float64:
		*next += 10000
		v.SetFloat(float64(*next))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("s")
	}
}

// unset lists the fields of a message, and of those in it, that have no value.
func unset(m protoreflect.Message, path string) (list []string) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		name := path + string(f.Name())
		switch {
		case !m.Has(f):
			list = append(list, name)
		case f.IsList() && f.Message() != nil:
			list = append(list, unset(m.Get(f).List().Get(0).Message(), name+".")...)
		case f.Message() != nil:
			list = append(list, unset(m.Get(f).Message(), name+".")...)
		}
	}
	return list
}

// full are statistics with everything in them, and memory.stat with a line for
// each field of a message, as the kernel calls it.
func full(lines protoreflect.MessageDescriptor, rename map[string]string) *cgroup.Stats {
	s := new(cgroup.Stats)
	next := uint64(0)
	numbers(reflect.ValueOf(s).Elem(), &next)
	s.Memory.Stat = map[string]uint64{}
	for i := range lines.Fields().Len() {
		name := string(lines.Fields().Get(i).Name())
		if to, is := rename[name]; is {
			name = to
		}
		next += 10000
		s.Memory.Stat[name] = next
	}
	return s
}

func check(t *testing.T, what string, got, want uint64) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %d, want %d", what, got, want)
	}
}

func TestVersion2(t *testing.T) {
	s := full((&cg2.MemoryStat{}).ProtoReflect().Descriptor(), nil)
	b := wire.Marshal(metrics.V2(s))
	var m cg2.Metrics
	if err := proto.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	if again, err := (proto.MarshalOptions{Deterministic: true}).Marshal(&m); err != nil || string(again) != string(b) {
		t.Errorf("containerd's own type writes other bytes: %x, not %x (%v)", again, b, err)
	}
	// Nobody counts a container's packets by its cgroup.
	if left := unset(m.ProtoReflect(), ""); !slices.Equal(left, []string{"network"}) {
		t.Errorf("without a value: %q", left)
	}
	check(t, "cpu", m.CPU.UsageUsec, *s.CPU.Usage/1000)
	check(t, "throttled", m.CPU.ThrottledUsec, *s.CPU.Throttled/1000)
	check(t, "memory", m.Memory.Usage, *s.Memory.Usage)
	check(t, "limit", m.Memory.UsageLimit, *s.Memory.Limit)
	check(t, "peak", m.Memory.MaxUsage, *s.Memory.Peak)
	check(t, "swap", m.Memory.SwapUsage, *s.Memory.Swap.Usage)
	check(t, "oom kills", m.MemoryEvents.OomKill, *s.Memory.Events.OOMKill)
	check(t, "pids", m.Pids.Current, *s.Pids.Usage)
	check(t, "read", m.Io.Usage[0].Rbytes, *s.IO.Devices[0].ReadBytes)
	check(t, "pressure", m.Io.PSI.Some.Total, s.IO.Pressure.Some.Total)
	for key, value := range s.Memory.Stat {
		switch key {
		case "usage", "usage_limit", "swap_usage", "swap_limit", "max_usage", "swap_max_usage", "PSI", "psi":
			continue // files of their own
		}
		f := m.Memory.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(key))
		check(t, key, m.Memory.ProtoReflect().Get(f).Uint(), value)
	}
	// Two lines of today's kernels are one number of the message.
	split := metrics.V2(&cgroup.Stats{Memory: &cgroup.MemoryStats{Stat: map[string]uint64{"workingset_refault_anon": 3, "workingset_refault_file": 4}}})
	check(t, "refaults", split.Memory.WorkingsetRefault, 7)
	if m := metrics.V2(&cgroup.Stats{Memory: &cgroup.MemoryStats{Counter: cgroup.Counter{Limit: new(uint64(cgroup.NoLimit))}}}); m.Memory.UsageLimit != math.MaxUint64 {
		t.Errorf("no limit is %d", m.Memory.UsageLimit)
	}
}

func TestVersion1(t *testing.T) {
	s := full((&cg1.MemoryStat{}).ProtoReflect().Descriptor(), map[string]string{
		"pg_pg_in": "pgpgin", "pg_pg_out": "pgpgout", "pg_fault": "pgfault", "pg_maj_fault": "pgmajfault",
		"total_pg_pg_in": "total_pgpgin", "total_pg_pg_out": "total_pgpgout", "total_pg_fault": "total_pgfault", "total_pg_maj_fault": "total_pgmajfault",
		"hierarchical_swap_limit": "hierarchical_memsw_limit",
	})
	b := wire.Marshal(metrics.V1(s))
	var m cg1.Metrics
	if err := proto.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	if again, err := (proto.MarshalOptions{Deterministic: true}).Marshal(&m); err != nil || string(again) != string(b) {
		t.Errorf("containerd's own type writes other bytes: %x, not %x (%v)", again, b, err)
	}
	// What only the CFQ scheduler counted (gone since Linux 5.0), the names of
	// devices, and what no cgroup knows.
	if left := unset(m.ProtoReflect(), ""); !slices.Equal(left, []string{
		"blkio.io_service_bytes_recursive.device", "blkio.io_serviced_recursive.device", "blkio.io_queued_recursive",
		"blkio.io_service_time_recursive", "blkio.io_wait_time_recursive", "blkio.io_merged_recursive",
		"blkio.io_time_recursive", "blkio.sectors_recursive", "network", "cgroup_stats",
	}) {
		t.Errorf("without a value: %q", left)
	}
	check(t, "cpu", m.CPU.Usage.Total, *s.CPU.Usage)
	check(t, "cpu of the first processor", m.CPU.Usage.PerCPU[0], s.CPU.PerCPU[0])
	check(t, "throttled", m.CPU.Throttling.ThrottledTime, *s.CPU.Throttled)
	check(t, "memory", m.Memory.Usage.Usage, *s.Memory.Usage)
	check(t, "memory with swap", m.Memory.Swap.Usage, *s.Memory.MemoryAndSwap.Usage)
	check(t, "kernel memory", m.Memory.Kernel.Usage, *s.Memory.Kernel.Usage)
	check(t, "oom kills", m.MemoryOomControl.OomKill, *s.Memory.Events.OOMKill)
	check(t, "pids", m.Pids.Current, *s.Pids.Usage)
	check(t, "cache", m.Memory.Cache, s.Memory.Stat["cache"])
	check(t, "faults", m.Memory.PgFault, s.Memory.Stat["pgfault"])
	if got := m.Blkio.IoServiceBytesRecursive[0]; got.Op != "Read" || got.Value != *s.IO.Devices[0].ReadBytes {
		t.Errorf("read: %v", got)
	}
	none := metrics.V1(&cgroup.Stats{
		Memory: &cgroup.MemoryStats{Counter: cgroup.Counter{Limit: new(uint64(cgroup.NoLimit))}},
		Pids:   &cgroup.PidsStats{Counter: cgroup.Counter{Limit: new(uint64(cgroup.NoLimit))}},
	})
	check(t, "no limit of memory", none.Memory.Usage.Limit, metrics.UnlimitedV1)
	check(t, "no limit of pids", none.Pids.Limit, 0)
}

// A cgroup of which nothing is known makes messages that clients can look into.
func TestEmpty(t *testing.T) {
	if b := wire.Marshal(metrics.V1(&cgroup.Stats{})); len(b) != 0 {
		t.Errorf("%x", b)
	}
	if b := wire.Marshal(metrics.V2(&cgroup.Stats{})); len(b) != 0 {
		t.Errorf("%x", b)
	}
}
