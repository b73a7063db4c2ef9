package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/ptr"
)

// setField puts the value of a field, spelt as memory.limit, into a resources
// object; known says whether there is such a field.
func setField(r *specs.LinuxResources, name, value string) (known bool, err error) {
	group, field, _ := strings.Cut(name, ".")
	switch group {
	case "memory":
		known, err = setMemory(own(&r.Memory), field, value)
	case "cpu":
		known, err = setCPU(own(&r.CPU), field, value)
	case "pids":
		if known = field == "limit"; known {
			err = parseTo(&own(&r.Pids).Limit, value, parseLimit(parseInt))
		}
	case "blockIO":
		known, err = setBlockIO(own(&r.BlockIO), field, value)
	case "hugepageLimits":
		if known = field != ""; known {
			var limit int64
			if limit, err = parseSize(value); err == nil && limit < 0 {
				err = fmt.Errorf("%q is not a size", value)
			}
			r.HugepageLimits = append(slices.Clone(r.HugepageLimits), specs.LinuxHugepageLimit{Pagesize: field, Limit: uint64(limit)})
		}
	case "network":
		known, err = setNetwork(own(&r.Network), field, value)
	case "rdma":
		known, err = setRDMA(r, field, value)
	case "devices":
		if known = field == ""; known {
			r.Devices, err = parseDeviceRules(value)
		}
	}
	return known, err
}

// own gives a section that may be changed, since sections of a file are used for several cgroups.
func own[T any](section **T) *T {
	fresh := new(T)
	if *section != nil {
		*fresh = **section
	}
	*section = fresh
	return fresh
}

func parseTo[T any](to **T, text string, parse func(string) (T, error)) error {
	value, err := parse(text)
	if err != nil {
		return fmt.Errorf("%q is not a value that it can take", text)
	}
	*to = &value
	return nil
}

// parseLimit takes the kernel's own word for no limit too.
func parseLimit(parse func(string) (int64, error)) func(string) (int64, error) {
	return func(text string) (int64, error) {
		if text == "max" {
			return -1, nil
		}
		return parse(text)
	}
}

func setMemory(m *specs.LinuxMemory, field, value string) (known bool, err error) {
	size := func(to **int64) error { return parseTo(to, value, parseLimit(parseSize)) }
	flag := func(to **bool) error { return parseTo(to, value, strconv.ParseBool) }
	switch field {
	case "limit":
		err = size(&m.Limit)
	case "reservation":
		err = size(&m.Reservation)
	case "swap":
		err = size(&m.Swap)
	case "kernel":
		//lint:ignore SA1019 the spec still has it, and the ledger warns
		err = size(&m.Kernel)
	case "kernelTCP":
		err = size(&m.KernelTCP)
	case "swappiness":
		err = parseTo(&m.Swappiness, value, parseUint)
	case "disableOOMKiller":
		err = flag(&m.DisableOOMKiller)
	case "useHierarchy":
		err = flag(&m.UseHierarchy)
	case "checkBeforeUpdate":
		err = flag(&m.CheckBeforeUpdate)
	default:
		return false, nil
	}
	return true, err
}

func setCPU(c *specs.LinuxCPU, field, value string) (known bool, err error) {
	switch field {
	case "shares":
		err = parseTo(&c.Shares, value, parseUint)
	case "quota":
		err = parseTo(&c.Quota, value, parseLimit(parseInt))
	case "period":
		err = parseTo(&c.Period, value, parseUint)
	case "burst":
		err = parseTo(&c.Burst, value, parseUint)
	case "realtimeRuntime":
		err = parseTo(&c.RealtimeRuntime, value, parseInt)
	case "realtimePeriod":
		err = parseTo(&c.RealtimePeriod, value, parseUint)
	case "idle":
		err = parseTo(&c.Idle, value, parseInt)
	case "cpus":
		c.Cpus = value
	case "mems":
		c.Mems = value
	default:
		return false, nil
	}
	return true, err
}

func setBlockIO(b *specs.LinuxBlockIO, field, value string) (known bool, err error) {
	switch field {
	case "weight":
		return true, parseTo(&b.Weight, value, parseWeight)
	case "leafWeight":
		return true, parseTo(&b.LeafWeight, value, parseWeight)
	case "weightDevice":
		var d specs.LinuxWeightDevice
		var n int64
		d.Major, d.Minor, n, err = parseDeviceLimit(value, parseInt)
		if err == nil {
			err = parseTo(&d.Weight, strconv.FormatInt(n, 10), parseWeight)
		}
		b.WeightDevice = append(slices.Clone(b.WeightDevice), d)
		return true, err
	}
	throttle := func(to *[]specs.LinuxThrottleDevice, parse func(string) (int64, error)) error {
		var d specs.LinuxThrottleDevice
		var n int64
		d.Major, d.Minor, n, err = parseDeviceLimit(value, parse)
		if err == nil && n < 0 {
			n = 0 // the spec's value for none
		}
		d.Rate = uint64(n)
		*to = append(slices.Clone(*to), d)
		return err
	}
	switch field {
	case "throttleReadBpsDevice":
		err = throttle(&b.ThrottleReadBpsDevice, parseLimit(parseSize))
	case "throttleWriteBpsDevice":
		err = throttle(&b.ThrottleWriteBpsDevice, parseLimit(parseSize))
	case "throttleReadIOPSDevice":
		err = throttle(&b.ThrottleReadIOPSDevice, parseLimit(parseInt))
	case "throttleWriteIOPSDevice":
		err = throttle(&b.ThrottleWriteIOPSDevice, parseLimit(parseInt))
	default:
		return false, nil
	}
	return true, err
}

// parseDeviceLimit reads "8:0 1M".
func parseDeviceLimit(text string, parse func(string) (int64, error)) (major, minor, limit int64, err error) {
	device, value, found := strings.Cut(strings.TrimSpace(text), " ")
	high, low, two := strings.Cut(device, ":")
	major, err1 := parseInt(high)
	minor, err2 := parseInt(low)
	limit, err3 := parse(strings.TrimSpace(value))
	if !found || !two || err1 != nil || err2 != nil || err3 != nil {
		return 0, 0, 0, fmt.Errorf("%q is not written as MAJOR:MINOR LIMIT", text)
	}
	return major, minor, limit, nil
}

func setNetwork(n *specs.LinuxNetwork, field, value string) (known bool, err error) {
	name, isPriority := strings.CutPrefix(field, "priorities.")
	number, err := strconv.ParseUint(value, 0, 32) // classes are written in hexadecimal
	if err != nil {
		err = fmt.Errorf("%q is not a value that it can take", value)
	}
	switch {
	case field == "classID":
		n.ClassID = ptr.To(uint32(number))
	case isPriority:
		n.Priorities = append(slices.Clone(n.Priorities), specs.LinuxInterfacePriority{Name: name, Priority: uint32(number)})
	default:
		return false, nil
	}
	return true, err
}

// setRDMA reads rdma.DEVICE.hcaHandles and rdma.DEVICE.hcaObjects.
func setRDMA(r *specs.LinuxResources, field, value string) (known bool, err error) {
	dot := strings.LastIndexByte(field, '.')
	if dot <= 0 {
		return false, nil
	}
	device, what := field[:dot], field[dot+1:]
	limits := map[string]specs.LinuxRdma{}
	for name, limit := range r.Rdma {
		limits[name] = limit
	}
	limit := limits[device]
	number := func(text string) (uint32, error) {
		n, err := strconv.ParseUint(text, 10, 32)
		return uint32(n), err
	}
	switch what {
	case "hcaHandles":
		err = parseTo(&limit.HcaHandles, value, number)
	case "hcaObjects":
		err = parseTo(&limit.HcaObjects, value, number)
	default:
		return false, nil
	}
	limits[device] = limit
	r.Rdma = limits
	return true, err
}

// parseDeviceRules reads "deny a, allow c 1:3 rwm", in the form of version 1's files.
func parseDeviceRules(text string) ([]specs.LinuxDeviceCgroup, error) {
	var rules []specs.LinuxDeviceCgroup
	for part := range strings.SplitSeq(text, ",") {
		words := strings.Fields(part)
		wrong := fmt.Errorf("%q is not a rule such as %q, %q or %q", strings.TrimSpace(part), "deny a", "allow c 1:3 rwm", "allow b 8:* r")
		if len(words) < 2 || len(words) > 4 || words[0] != "allow" && words[0] != "deny" {
			return nil, wrong
		}
		rule := specs.LinuxDeviceCgroup{Allow: words[0] == "allow", Type: words[1], Access: "rwm"}
		if len(words) > 2 {
			high, low, two := strings.Cut(words[2], ":")
			var err1, err2 error
			rule.Major, err1 = deviceNumber(high)
			rule.Minor, err2 = deviceNumber(low)
			if !two || err1 != nil || err2 != nil {
				return nil, wrong
			}
		}
		if len(words) > 3 {
			rule.Access = words[3]
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// deviceNumber is nil for *, as the spec has it for all numbers.
func deviceNumber(text string) (*int64, error) {
	if text == "*" {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	return ptr.To(int64(n)), err
}
