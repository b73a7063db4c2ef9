package ledger

import (
	"math"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/kernel"
)

// Translate gives the writes that set res on a host with this layout, in the
// order in which they are to be made. The error is of type Errors and names
// every field that the host cannot honour; there are no writes then.
func Translate(res *specs.LinuxResources, layout Layout, opts Options) ([]Write, []Warning, error) {
	t := translation{layout: layout, opts: opts}
	t.resources(res)
	if len(t.errors) > 0 {
		return nil, t.warnings, t.errors
	}
	writes := make([]Write, 0, len(t.items))
	for _, it := range t.items {
		writes = append(writes, it.write)
	}
	return writes, t.warnings, nil
}

// Properties gives the unit properties that set res, each only where
// layout.Systemd has it, and the writes that come after systemd has set them. The
// writes are all that Translate gives, with systemd's rounding: systemd logs a value
// that the kernel refuses and goes on, has formulas of its own for some, and leaves
// others out (a period without a quota). The error is as with Translate.
func Properties(res *specs.LinuxResources, layout Layout, opts Options) ([]Property, []Write, []Warning, error) {
	t := translation{layout: layout, opts: opts, units: true}
	t.resources(res)
	if len(t.errors) > 0 {
		return nil, nil, t.warnings, t.errors
	}
	var properties []Property
	writes := make([]Write, 0, len(t.items))
	for _, it := range t.items {
		for _, p := range it.properties {
			properties = mergeProperty(properties, p)
		}
		writes = append(writes, it.write)
	}
	return properties, writes, t.warnings, nil
}

// Accounting gives the properties that switch on the counting of everything,
// which a unit has whether limits are set or not.
func Accounting(layout Layout) []Property {
	io := "IOAccounting"
	if layout.onV1("blkio") {
		io = "BlockIOAccounting"
	}
	names := []string{"CPUAccounting", io, "MemoryAccounting", "TasksAccounting"}
	properties := make([]Property, len(names))
	for i, name := range names {
		properties[i] = Property{Name: name, Value: true}
	}
	return properties
}

// mergeProperty appends to a property that is a list and replaces any other,
// so that a bus call never has the same name twice. The later one wins because
// "unified" comes after the fields.
func mergeProperty(properties []Property, p Property) []Property {
	for i := range properties {
		if properties[i].Name != p.Name {
			continue
		}
		if have, ok := properties[i].Value.([]DeviceValue); ok {
			properties[i].Value = append(have, p.Value.([]DeviceValue)...)
			return properties
		}
		properties[i] = p
		return properties
	}
	return append(properties, p)
}

// translation is one run of Translate or Properties.
type translation struct {
	layout Layout
	opts   Options
	units  bool // properties are wanted

	items    []item
	warnings []Warning
	errors   Errors
}

// item is one value on its way: a write, and the properties that carry it too.
type item struct {
	write      Write
	properties []Property
}

func (t *translation) resources(res *specs.LinuxResources) {
	if res == nil {
		return
	}
	t.memory(res.Memory)
	t.cpu(res.CPU)
	t.pids(res.Pids)
	t.blockIO(res.BlockIO)
	t.hugepages(res.HugepageLimits)
	t.network(res.Network)
	t.rdma(res.Rdma)
	t.unified(res.Unified)
}

func (t *translation) fail(pointer, message, hint string) {
	t.errors = append(t.errors, &FieldError{Pointer: pointer, Message: message, Hint: hint})
}

func (t *translation) warn(pointer, message string) {
	t.warnings = append(t.warnings, Warning{Pointer: pointer, Message: message})
}

// where is the place of a field on this host.
type where struct {
	*Place
	v2 bool
}

// place finds where a field goes. Each controller is on one hierarchy only, so
// one of the two places of the row serves, or none.
func (t *translation) place(field, pointer string) (where, bool) {
	e := entry(field)
	if c := e.V2.Controller; c != "" && t.layout.onV2(c) {
		return where{&e.V2, true}, true
	}
	if c := e.V1.Controller; c != "" && t.layout.onV1(c) {
		return where{&e.V1, false}, true
	}
	switch {
	case t.layout.Unified == nil && len(t.layout.Legacy) == 0:
		t.fail(pointer, "no cgroup file system is mounted, so nothing can be limited", "mount -t cgroup2 cgroup2 /sys/fs/cgroup mounts version 2")
	case e.V2.Controller == "" && e.V2.Missing != "" && len(t.layout.Unified) > 0:
		t.fail(pointer, e.V2.Missing, "remove the field, or use a host with cgroup v1's "+e.V1.Controller)
	case len(t.layout.Unified) > 0 && e.V2.Controller != "":
		t.fail(pointer, "this host has no "+e.V2.Controller+" controller in its cgroups", controllerHint)
	default:
		t.fail(pointer, "this host has no "+e.V1.Controller+" controller in its cgroups", controllerHint)
	}
	return where{}, false
}

const controllerHint = "it is missing in the kernel, disabled by cgroup_disable=, not mounted, or not delegated"

// file gives the first file of the place that the cgroup has. Without knowledge
// of the files, it is the first choice.
func (t *translation) file(p where, pointer string) (string, bool) {
	if len(p.Files) == 0 {
		t.fail(pointer, p.Missing, "remove the field")
		return "", false
	}
	for _, f := range p.Files {
		if t.has(p.Controller, f) {
			return f, true
		}
	}
	t.failMissing(pointer, p.Controller, "this kernel has no "+strings.Join(p.Files, " and no "), neededFor(p.Files...))
	return "", false
}

// failMissing says why the cgroup has no such file: often it is the kernel.
func (t *translation) failMissing(pointer, controller, text, hint string) {
	if t.layout.Absent != nil && t.layout.Absent(controller) {
		text, hint = "the cgroup is not in the hierarchy of the "+controller+" controller", "create it there too"
	}
	t.fail(pointer, text, hint)
}

func (t *translation) has(controller, file string) bool {
	return t.layout.Files == nil || t.layout.Files(controller, file)
}

// set is the plain case: one value for the one file of the field.
func (t *translation) set(field, pointer, value, note string, property any) {
	p, ok := t.place(field, pointer)
	if !ok {
		return
	}
	f, ok := t.file(p, pointer)
	if !ok {
		return
	}
	t.items = append(t.items, t.item(p, f, pointer, value, note, property))
}

// item makes the write and, where systemd has the property of the place, that
// too. property is nil where the caller wants none.
func (t *translation) item(p where, file, pointer, value, note string, property any) item {
	it := item{
		write: Write{Controller: p.Controller, V2: p.v2, File: file, Value: value, Pointer: pointer, Note: note, ReadBack: readsBack(file)},
	}
	if property != nil && len(p.Properties) == 1 && t.wants(p.Properties[0]) {
		it.properties = []Property{{Name: p.Properties[0].Name, Value: property, Pointer: pointer, Note: note}}
	}
	return it
}

// wants says whether this run makes properties and systemd is new enough.
func (t *translation) wants(p UnitProperty) bool {
	return t.units && t.layout.Systemd >= p.Since
}

// present reads a file of the cgroup as it is now. For a cgroup that is still
// to be made it says no.
func (t *translation) present(controller, file string) (string, bool) {
	if t.opts.Present == nil {
		return "", false
	}
	return t.opts.Present(controller, file)
}

// presentNumber reads a file with one number, where "max" and what v1 shows for
// no limit are -1.
func (t *translation) presentNumber(controller, file string) (int64, bool) {
	s, ok := t.present(controller, file)
	if !ok {
		return 0, false
	}
	return parseLimit(s)
}

// noLimit is the least value that v1 shows for "no limit": PAGE_COUNTER_MAX
// pages, which is the greatest int64 rounded down to a page, at most 64 KiB.
const noLimit = math.MaxInt64 &^ (64<<10 - 1)

func parseLimit(s string) (int64, bool) {
	s = strings.TrimSpace(s)
	if s == "max" {
		return -1, true
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, false
	}
	if n >= noLimit {
		n = -1
	}
	return n, true
}

// infinite is systemd's value for no limit (CGROUP_LIMIT_MAX).
const infinite = uint64(math.MaxUint64)

// limit writes -1 the way the version wants it, and gives the property's value.
func limit(n int64, v2 bool) (file string, property uint64) {
	switch {
	case n < 0 && v2:
		return "max", infinite
	case n < 0:
		return "-1", infinite
	}
	return strconv.FormatInt(n, 10), uint64(n)
}

// checkLimit refuses what is neither a limit nor -1.
func (t *translation) checkLimit(pointer string, n int64) bool {
	if n < -1 {
		t.fail(pointer, strconv.FormatInt(n, 10)+" is not a limit", "a limit is 0 or more, and -1 for none")
		return false
	}
	return true
}

func decimal[T int | int64 | uint16 | uint32 | uint64](n T) string {
	if n < 0 {
		return strconv.FormatInt(int64(n), 10)
	}
	return strconv.FormatUint(uint64(n), 10)
}

// neededFor says which kernel has the first of the files, where that is newer than the floor.
func neededFor(files ...string) string {
	for _, f := range files {
		switch f {
		case "cpu.max.burst", "cpu.cfs_burst_us":
			return kernel.CPUBurst.Needs()
		case "cpu.idle":
			return kernel.CPUIdle.Needs()
		}
	}
	return ""
}
