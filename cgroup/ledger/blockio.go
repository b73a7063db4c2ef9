package ledger

import (
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"
)

func (t *translation) blockIO(b *specs.LinuxBlockIO) {
	if b == nil {
		return
	}
	if b.Weight != nil && *b.Weight != 0 {
		t.ioWeight("/blockIO/weight", "/blockIO/weight", *b.Weight, "")
	}
	if b.LeafWeight != nil && *b.LeafWeight != 0 {
		at := "/blockIO/leafWeight"
		t.set(at, at, decimal(t.blkioWeight(at, *b.LeafWeight)), "", nil)
	}
	for i := range b.WeightDevice {
		t.weightDevice("/blockIO/weightDevice/"+strconv.Itoa(i), &b.WeightDevice[i])
	}
	t.throttles("throttleReadBpsDevice", "rbps", b.ThrottleReadBpsDevice)
	t.throttles("throttleWriteBpsDevice", "wbps", b.ThrottleWriteBpsDevice)
	t.throttles("throttleReadIOPSDevice", "riops", b.ThrottleReadIOPSDevice)
	t.throttles("throttleWriteIOPSDevice", "wiops", b.ThrottleWriteIOPSDevice)
}

func (t *translation) weightDevice(at string, d *specs.LinuxWeightDevice) {
	device, ok := t.device(at, d.LinuxBlockIODevice)
	if !ok {
		return
	}
	if d.Weight == nil && d.LeafWeight == nil {
		t.fail(at, "neither weight nor leafWeight is set", "the spec wants at least one")
		return
	}
	if d.Weight != nil {
		t.ioWeight("/blockIO/weightDevice/*/weight", at+"/weight", *d.Weight, device)
	}
	if d.LeafWeight != nil {
		at += "/leafWeight"
		t.set("/blockIO/weightDevice/*/leafWeight", at, device+" "+decimal(t.blkioWeight(at, *d.LeafWeight)), "", nil)
	}
}

// device gives MAJ:MIN as the files want it.
func (t *translation) device(at string, d specs.LinuxBlockIODevice) (string, bool) {
	// The kernel's dev_t has 12 bits of major and 20 of minor.
	if d.Major < 0 || d.Major >= 1<<12 || d.Minor < 0 || d.Minor >= 1<<20 {
		t.fail(at, "there is no device "+decimal(d.Major)+":"+decimal(d.Minor), "")
		return "", false
	}
	return decimal(d.Major) + ":" + decimal(d.Minor), true
}

// blkioWeight keeps a weight in v1's range, and says so.
func (t *translation) blkioWeight(at string, weight uint16) uint64 {
	w := min(max(uint64(weight), 10), 1000)
	if w != uint64(weight) {
		t.warn(at, decimal(weight)+" is out of range and treated as "+decimal(w))
	}
	return w
}

// ioWeight sets the weight of the cgroup, or for one device. On v2 there are two
// schedulers with weights, iocost behind io.weight and BFQ behind
// io.bfq.weight, and each disk has its own: both are set where both are there.
func (t *translation) ioWeight(field, at string, weight uint16, device string) {
	p, ok := t.place(field, at)
	if !ok {
		return
	}
	w := t.blkioWeight(at, weight)
	prefix := ""
	if device != "" {
		prefix = device + " "
	}
	if !p.v2 {
		if f, ok := t.file(p, at); ok {
			t.items = append(t.items, t.item(p, f, at, prefix+decimal(w), "", w))
		}
		return
	}
	io, _ := BlkioToIOWeight(w)
	note := "weight " + decimal(w) + " of 10 to 1000 is " + decimal(io) + " of 1 to 10000"
	var property any = io
	if device != "" {
		property = []DeviceValue{{Path: "/dev/block/" + device, Value: io}}
	} else {
		prefix = "default "
	}
	iocost, bfq := p.Files[0], p.Files[1]
	if _, ok := t.file(p, at); !ok {
		return
	}
	if t.has(p.Controller, iocost) {
		t.items = append(t.items, t.item(p, iocost, at, prefix+decimal(io), note, property))
		property = nil // one property for both files; for BFQ systemd has a formula of its own
	}
	if t.has(p.Controller, bfq) {
		it := t.item(p, bfq, at, prefix+decimal(w), "BFQ takes the weight unchanged", property)
		it.write.Optional = t.layout.Files == nil
		t.items = append(t.items, it)
	}
}

func (t *translation) throttles(name, key string, devices []specs.LinuxThrottleDevice) {
	for i, d := range devices {
		at := "/blockIO/" + name + "/" + strconv.Itoa(i)
		device, ok := t.device(at, d.LinuxBlockIODevice)
		if !ok {
			continue
		}
		field := "/blockIO/" + name + "/*"
		p, ok := t.place(field, at)
		if !ok {
			continue
		}
		if !p.v2 {
			t.set(field, at, device+" "+decimal(d.Rate), "", nil)
			continue
		}
		// v1 removes the limit at a rate of 0, where v2's io.max refuses
		// it with ERANGE. Keys that a line does not have stay as they are.
		rate, property, note := decimal(d.Rate), d.Rate, ""
		if d.Rate == 0 {
			rate, property, note = "max", infinite, "0 means no limit"
		}
		t.set(field, at, device+" "+key+"="+rate, note, []DeviceValue{{Path: "/dev/block/" + device, Value: property}})
	}
}
