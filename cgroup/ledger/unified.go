package ledger

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/internal/kernel"
)

// unified takes any file of a controller that is on v2, known to the table or
// not, as the spec wants it. It comes after the fields and wins over them.
func (t *translation) unified(files map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at := string(json.AppendKey([]byte("/unified"), name))
		controller, ok := t.unifiedController(name, at)
		if !ok {
			continue
		}
		if name == "cpu.weight" && strings.TrimSpace(files["cpu.idle"]) == "1" {
			// The kernel would refuse it (see sharesAndIdle), and to
			// systemd both are one property.
			t.warn(at, "left out: an idle cgroup has no weight")
			continue
		}
		t.replaced(controller, name, at)
		if name == "cpu.idle" && strings.TrimSpace(files[name]) == "1" {
			t.replaced(controller, "cpu.weight", at)
		}
		t.unifiedLines(controller, name, files[name], at)
	}
}

// unifiedController finds the controller of a key, and refuses keys that could
// leave the cgroup's directory or would meddle with the life of the cgroup.
func (t *translation) unifiedController(name, at string) (string, bool) {
	controller, rest, dotted := strings.Cut(name, ".")
	switch {
	case strings.ContainsAny(name, "/\x00\n"):
		t.fail(at, "the key is not the name of a file in the cgroup", "it has a slash or a control character")
		return "", false
	case !dotted || controller == "" || rest == "":
		t.fail(at, "the key is not the name of a control file", "it is written as CONTROLLER.FILE, as in memory.high")
		return "", false
	case controller == "cgroup":
		return controller, t.coreFile(name, at)
	case t.layout.onV2(controller):
		if t.has(controller, name) {
			return controller, true
		}
		t.failMissing(at, controller, "this kernel has no "+name, neededFor(name))
		return "", false
	case t.layout.onV1(controller):
		t.fail(at, "the "+controller+" controller is on cgroup v1 on this host, and unified is for v2", "use the field of the spec instead")
		return "", false
	case len(t.layout.Unified) == 0:
		t.fail(at, "this host has no controllers on cgroup v2", "use the fields of the spec instead")
		return "", false
	}
	t.fail(at, "there is no controller "+strconv.Quote(controller)+" on this host's cgroup v2", controllerHint)
	return "", false
}

// coreFile lets through the files of cgroup v2 itself that are limits or
// switches. The others are how Berth makes, freezes, fills and kills the cgroup;
// a config that wrote them would pull it from under the container.
func (t *translation) coreFile(name, at string) bool {
	switch name {
	case "cgroup.max.depth", "cgroup.max.descendants", "cgroup.pressure":
	case "cgroup.freeze":
		t.fail(at, "a container is frozen by pausing it", "remove the key")
		return false
	case "cgroup.subtree_control":
		t.fail(at, "controllers are enabled where a limit needs them", "remove the key")
		return false
	default:
		t.fail(at, name+" is not for a config to write", "remove the key; cgroup.max.depth, cgroup.max.descendants and cgroup.pressure may be set")
		return false
	}
	if t.layout.Unified == nil || !t.has("cgroup", name) {
		t.fail(at, "this host has no "+name, "it needs cgroup v2; of cgroup.pressure, "+kernel.CgroupPressure.Needs())
		return false
	}
	return true
}

// replaced drops what a field made for the same file, except where the file
// has a line for each device and both can stand.
func (t *translation) replaced(controller, name, at string) {
	if perDevice(name) {
		return
	}
	t.items = slices.DeleteFunc(t.items, func(it item) bool {
		w := it.write
		if !w.V2 || w.Controller != controller || w.File != name || strings.HasPrefix(w.Pointer, "/unified/") {
			return false
		}
		t.warn(w.Pointer, "replaced by "+at)
		return true
	})
}

// perDevice says whether a file takes one line for each device.
func perDevice(name string) bool {
	switch name {
	case "io.max", "io.weight", "io.bfq.weight", "io.latency", "io.cost.qos", "io.cost.model",
		"rdma.max", "misc.max", "dmem.min", "dmem.low", "dmem.max":
		return true
	}
	return false
}

// unifiedLines writes the value line by line: the kernel's parsers of files
// with lines take one at a write, and would read the second as a part of the
// first.
func (t *translation) unifiedLines(controller, name, value, at string) {
	p := where{&Place{Controller: controller, Properties: unifiedProperties(name)}, true}
	lines := strings.FieldsFunc(value, func(r rune) bool { return r == '\n' })
	if len(lines) == 0 {
		lines = []string{value} // the kernel says what an empty value means
	}
	for _, line := range lines {
		it := t.item(p, name, at, line, "", nil)
		t.unifiedProperty(&it, name, strings.TrimSpace(line), at)
		t.items = append(t.items, it)
	}
}

// unifiedProperty adds the property for a line, where there is one and the line
// is understood. What is not understood goes to the file, whose answer is the
// kernel's.
func (t *translation) unifiedProperty(it *item, name, line, at string) {
	add := func(property string, value any, note string) {
		for _, p := range unifiedProperties(name) {
			if p.Name == property && t.wants(p) {
				it.properties = append(it.properties, Property{Name: property, Value: value, Pointer: at, Note: note})
			}
		}
	}
	switch name {
	case "memory.min", "memory.low", "memory.high", "memory.max", "memory.swap.max", "memory.zswap.max", "pids.max":
		if n, ok := unifiedLimit(line); ok {
			add(unifiedProperties(name)[0].Name, n, "")
		}
	case "memory.zswap.writeback":
		if line == "0" || line == "1" {
			add("MemoryZSwapWriteback", line == "1", "")
		}
	case "memory.oom.group":
		// Slices have no OOMPolicy, and systemd refuses to change that of a scope that runs
		// (PropertyReadOnly). A kubelet repeats the value with each change of a container's limits.
		if t.opts.Slice || t.opts.Present != nil {
			return
		}
		switch line {
		case "0":
			add("OOMPolicy", "continue", "")
		case "1":
			add("OOMPolicy", "kill", "")
		}
	case "cpu.weight":
		if n, err := strconv.ParseUint(line, 10, 64); err == nil && n >= minWeight && n <= maxWeight {
			add("CPUWeight", n, "")
		}
	case "cpu.idle":
		if line == "1" {
			add("CPUWeight", uint64(0), "the weight idle")
		}
	case "cpu.max":
		t.unifiedBandwidth(it, line, at)
	case "cpuset.cpus", "cpuset.mems":
		if l, err := ParseList(line); err == nil && l.Len() > 0 {
			add(unifiedProperties(name)[0].Name, l.Bitmap(), "")
		}
	case "io.weight":
		device, weight := splitWeight(line)
		n, err := strconv.ParseUint(weight, 10, 64)
		switch {
		case err != nil || n < minWeight || n > maxWeight:
		case device == "default":
			add("IOWeight", n, "")
		default:
			add("IODeviceWeight", []DeviceValue{{"/dev/block/" + device, n}}, "")
		}
	case "io.max":
		t.unifiedIOMax(line, add)
	case "io.latency":
		device, target, ok := strings.Cut(line, " target=")
		if n, err := strconv.ParseUint(target, 10, 64); ok && err == nil && isDevice(device) {
			add("IODeviceLatencyTargetUSec", []DeviceValue{{"/dev/block/" + device, n}}, "")
		}
	}
}

// unifiedLimit reads a plain number of bytes or "max". The kernel would take
// 1G too (memparse), and so does this.
func unifiedLimit(s string) (uint64, bool) {
	if s == "max" {
		return infinite, true
	}
	shift := 0
	if i := len(s) - 1; i > 0 {
		switch s[i] {
		case 'k', 'K':
			shift = 10
		case 'm', 'M':
			shift = 20
		case 'g', 'G':
			shift = 30
		case 't', 'T':
			shift = 40
		}
		if shift > 0 {
			s = s[:i]
		}
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n<<shift>>shift != n {
		return 0, false
	}
	return n << shift, true
}

func (t *translation) unifiedBandwidth(it *item, line, at string) {
	words := strings.Fields(line)
	if len(words) < 1 || len(words) > 2 {
		return
	}
	quota, ok := parseLimit(words[0])
	if !ok || quota < -1 {
		return
	}
	_, period := t.bandwidthNow(true)
	if len(words) == 2 {
		p, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil || p < 1000 || p > 1000000 {
			return // the kernel refuses it
		}
		period = p
	}
	t.quotaProperties(it, at, at, quota, period, len(words) == 2)
}

// splitWeight reads a line of io.weight: "100", "default 100" or "8:0 100".
func splitWeight(line string) (device, weight string) {
	device, weight, two := strings.Cut(line, " ")
	if !two {
		return "default", line
	}
	if device != "default" && !isDevice(device) {
		return "", ""
	}
	return device, strings.TrimSpace(weight)
}

func isDevice(s string) bool {
	major, minor, ok := strings.Cut(s, ":")
	_, err1 := strconv.ParseUint(major, 10, 12)
	_, err2 := strconv.ParseUint(minor, 10, 20)
	return ok && err1 == nil && err2 == nil
}

func (t *translation) unifiedIOMax(line string, add func(string, any, string)) {
	words := strings.Fields(line)
	if len(words) < 2 || !isDevice(words[0]) {
		return
	}
	type limit struct {
		property string
		value    uint64
	}
	var limits []limit
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		n, ok := unifiedLimit(value)
		property := ""
		switch key {
		case "rbps":
			property = "IOReadBandwidthMax"
		case "wbps":
			property = "IOWriteBandwidthMax"
		case "riops":
			property = "IOReadIOPSMax"
		case "wiops":
			property = "IOWriteIOPSMax"
		}
		if !ok || property == "" {
			return
		}
		limits = append(limits, limit{property, n})
	}
	for _, l := range limits {
		add(l.property, []DeviceValue{{"/dev/block/" + words[0], l.value}}, "")
	}
}
