package cgroup

import (
	"bytes"
	"slices"
)

// IOStats is what was read from and written to block devices.
type IOStats struct {
	Devices  []DeviceIO `json:"devices,omitempty"`
	Pressure *Pressure  `json:"pressure,omitempty"`
}

// DeviceIO is the input and output of one device.
type DeviceIO struct {
	Major        uint32  `json:"major"`
	Minor        uint32  `json:"minor"`
	ReadBytes    *uint64 `json:"readBytes,omitempty"`
	WriteBytes   *uint64 `json:"writeBytes,omitempty"`
	DiscardBytes *uint64 `json:"discardBytes,omitempty"`
	Reads        *uint64 `json:"reads,omitempty"`
	Writes       *uint64 `json:"writes,omitempty"`
	Discards     *uint64 `json:"discards,omitempty"`
	// Extra has what else the kernel says: version 2's "cost.usage" and such,
	// and version 1's "sync_bytes", "async_reads" and such, by their file and
	// the word in the line.
	Extra map[string]uint64 `json:"extra,omitempty"`
}

func readIO(r *statsReader, s *Stats, _ Part) {
	io := &IOStats{}
	known := false
	if n := r.g.node("io"); n != nil {
		if text, ok := r.text(n, "io.stat"); ok {
			io.Devices = parseIOStat(text)
			known = true
		}
	} else if n := r.g.node("blkio"); n != nil {
		io.Devices, known = readBlkio(r, n)
	}
	io.Pressure = r.pressure(r.g.unified(), "io.pressure")
	if known || io.Pressure != nil {
		s.IO = io
	}
}

// parseIOStat reads io.stat: "MAJ:MIN rbytes=… wbytes=… …" lines. A device
// that did nothing may have its number alone.
func parseIOStat(text []byte) []DeviceIO {
	var list []DeviceIO
	for line := range bytes.Lines(text) {
		name, rest, _ := bytes.Cut(bytes.TrimSpace(line), []byte{' '})
		major, minor, ok := parseDevice(name)
		if !ok {
			continue
		}
		d := DeviceIO{Major: major, Minor: minor}
		for field := range bytes.FieldsSeq(rest) {
			key, text, _ := bytes.Cut(field, []byte{'='})
			value, ok := parseUint(text)
			if !ok {
				continue
			}
			switch string(key) {
			case "rbytes":
				d.ReadBytes = &value
			case "wbytes":
				d.WriteBytes = &value
			case "dbytes":
				d.DiscardBytes = &value
			case "rios":
				d.Reads = &value
			case "wios":
				d.Writes = &value
			case "dios":
				d.Discards = &value
			default:
				d.extra(string(key), value)
			}
		}
		list = append(list, d)
	}
	return list
}

func (d *DeviceIO) extra(key string, value uint64) {
	if d.Extra == nil {
		d.Extra = map[string]uint64{}
	}
	d.Extra[key] = value
}

func parseDevice(text []byte) (major, minor uint32, ok bool) {
	a, b, found := bytes.Cut(text, []byte{':'})
	high, ok1 := parseUint(a)
	low, ok2 := parseUint(b)
	return uint32(high), uint32(low), found && ok1 && ok2 && high < 1<<32 && low < 1<<32
}

// readBlkio reads version 1's counters. The throttling layer counts on every
// disk (since Linux 6.10 only where a limit was ever set), BFQ on those that
// it schedules; a device is taken from the first that knows it.
func readBlkio(r *statsReader, n *node) (list []DeviceIO, known bool) {
	for _, layer := range []string{"blkio.throttle.", "blkio.bfq."} {
		suffix := "_recursive"
		text, ok := r.text(n, layer+"io_service_bytes"+suffix)
		if !ok {
			suffix = ""
			text, ok = r.text(n, layer+"io_service_bytes")
		}
		if !ok {
			continue
		}
		known = true
		fresh := map[[2]uint32]bool{}
		list = parseBlkio(text, list, fresh, "bytes")
		if r.totals {
			continue
		}
		if text, ok := r.text(n, layer+"io_serviced"+suffix); ok {
			list = parseBlkio(text, list, fresh, "ios")
		}
		if layer == "blkio.throttle." || len(fresh) == 0 {
			continue
		}
		// Kernels built to debug BFQ have more.
		for _, name := range []string{"io_service_time", "io_wait_time", "io_merged", "io_queued"} {
			text, ok := r.text(n, layer+name+suffix)
			if !ok {
				break
			}
			list = parseBlkio(text, list, fresh, name)
		}
	}
	return list, known
}

// parseBlkio reads "MAJ:MIN OPERATION VALUE" lines into the list, for devices
// that are not there yet, or are fresh.
func parseBlkio(text []byte, list []DeviceIO, fresh map[[2]uint32]bool, what string) []DeviceIO {
	for line := range bytes.Lines(text) {
		name, rest, _ := bytes.Cut(bytes.TrimSpace(line), []byte{' '})
		operation, number, _ := bytes.Cut(rest, []byte{' '})
		major, minor, ok := parseDevice(name)
		value, ok2 := parseUint(number)
		if !ok || !ok2 {
			continue // the sum at the end
		}
		key := [2]uint32{major, minor}
		i := slices.IndexFunc(list, func(d DeviceIO) bool { return d.Major == major && d.Minor == minor })
		if i < 0 {
			fresh[key] = true
			i = len(list)
			list = append(list, DeviceIO{Major: major, Minor: minor})
		} else if !fresh[key] {
			continue
		}
		list[i].take(what, string(operation), value)
	}
	return list
}

// take files one value of version 1.
func (d *DeviceIO) take(what, operation string, value uint64) {
	switch what + " " + operation {
	case "bytes Read":
		d.ReadBytes = &value
	case "bytes Write":
		d.WriteBytes = &value
	case "bytes Discard":
		d.DiscardBytes = &value
	case "ios Read":
		d.Reads = &value
	case "ios Write":
		d.Writes = &value
	case "ios Discard":
		d.Discards = &value
	case "bytes Total", "ios Total":
		// The sum of the others.
	case "bytes Sync":
		d.extra("sync_bytes", value)
	case "bytes Async":
		d.extra("async_bytes", value)
	case "ios Sync":
		d.extra("sync_ios", value)
	case "ios Async":
		d.extra("async_ios", value)
	default:
		d.extra(what+"."+operation, value)
	}
}
