package ledger

import (
	"math"

	"github.com/opencontainers/runtime-spec/specs-go"
)

func (t *translation) memory(m *specs.LinuxMemory) {
	if m == nil {
		return
	}
	t.useHierarchy(m.UseHierarchy)
	t.memoryLimits(m)
	t.reservation(m.Reservation)
	t.kernelMemory(m)
	t.swappiness(m.Swappiness)
	t.oomKiller(m.DisableOOMKiller)
}

// given says whether a limit is set at all. Clients send 0 for "leave it as it
// is", a habit that comes from runc's plain integers.
func given(n *int64) bool { return n != nil && *n != 0 }

// memoryLimits sets the limit and the swap, whose order matters on v1: the
// kernel refuses a sum that is below the limit, at any moment.
func (t *translation) memoryLimits(m *specs.LinuxMemory) {
	const limitAt, swapAt = "/memory/limit", "/memory/swap"
	if given(m.Limit) && !t.checkLimit(limitAt, *m.Limit) || given(m.Swap) && !t.checkLimit(swapAt, *m.Swap) {
		return
	}
	if !given(m.Limit) && !given(m.Swap) {
		return
	}
	var limitItem *item
	if given(m.Limit) {
		p, ok := t.place(limitAt, limitAt)
		if !ok {
			return
		}
		if !t.roomFor(*m.Limit, p, m.CheckBeforeUpdate) || !p.v2 && !given(m.Swap) && !t.belowSum(*m.Limit) {
			return
		}
		if f, ok := t.file(p, limitAt); ok {
			value, property := limit(*m.Limit, p.v2)
			it := t.item(p, f, limitAt, value, "", property)
			limitItem = &it
		}
	}
	sum, implied := t.sum(m)
	swapItem := t.swap(sum, implied, m.Limit)
	first, second := limitItem, swapItem
	if swapItem != nil && !swapItem.write.V2 && t.raisesSum(sum) {
		first, second = swapItem, limitItem
	}
	for _, it := range []*item{first, second} {
		if it != nil {
			t.items = append(t.items, *it)
		}
	}
}

// roomFor is checkBeforeUpdate: a limit that is below the present use is
// refused. v1 would refuse by itself, but only after it tried to reclaim, and
// without a number in the message.
func (t *translation) roomFor(limit int64, p where, check *bool) bool {
	if check == nil || !*check || limit < 0 {
		return true
	}
	file := "memory.usage_in_bytes"
	if p.v2 {
		file = "memory.current"
	}
	use, ok := t.presentNumber("memory", file)
	if !ok || use <= limit {
		return true
	}
	t.fail("/memory/limit", "the cgroup uses "+decimal(use)+" bytes now, more than the new limit of "+decimal(limit),
		"checkBeforeUpdate asks to refuse this; without it the kernel reclaims and may kill")
	return false
}

// sum is the limit on memory and swap together, 0 for none. Where the memory
// limit of a living cgroup is taken off, that of the sum goes with it: v1 would
// refuse a sum below, and on v2 it is what the same config does on v1.
func (t *translation) sum(m *specs.LinuxMemory) (swap int64, implied bool) {
	switch {
	case given(m.Swap):
		return *m.Swap, false
	case given(m.Limit) && *m.Limit == -1 && t.opts.Present != nil:
		return -1, true
	}
	return 0, false
}

// belowSum refuses a v1 limit alone that is above the present limit of the sum,
// which the kernel would refuse with a bare EINVAL.
func (t *translation) belowSum(limit int64) bool {
	now, ok := t.presentNumber("memory", "memory.memsw.limit_in_bytes")
	if !ok || now < 0 || limit <= now {
		return true
	}
	t.fail("/memory/limit", decimal(limit)+" is above the present limit of "+decimal(now)+" on memory and swap together", "set /memory/swap too")
	return false
}

// swap makes the item of the sum.
func (t *translation) swap(swap int64, implied bool, limitField *int64) *item {
	const at = "/memory/swap"
	if swap == 0 {
		return nil
	}
	p, ok := t.place(at, at)
	if !ok {
		return nil
	}
	value, property, note, ok := t.swapValue(swap, limitField, p.v2)
	if !ok {
		return nil
	}
	if implied {
		note = "memory has no limit, so swap has none"
	}
	file := p.Files[0]
	if !t.has(p.Controller, file) {
		switch {
		case implied:
		case value == "max" || value == "-1" || p.v2 && value == "0":
			t.warn(at, "this kernel does not count swap (no "+file+"): nothing to limit")
		default:
			t.fail(at, "this kernel does not count swap (no "+file+")", "boot with swapaccount=1, or remove the field")
		}
		return nil
	}
	it := t.item(p, file, at, value, note, property)
	return &it
}

// swapValue converts the sum into what the version wants.
func (t *translation) swapValue(swap int64, limitField *int64, v2 bool) (value string, property uint64, note string, ok bool) {
	const at = "/memory/swap"
	if swap < 0 {
		value, property = limit(-1, v2)
		return value, property, "", true
	}
	memory, ok := t.memoryLimit(limitField, v2)
	if !ok {
		t.fail(at, "the memory limit, which this sum contains, cannot be read", "set the memory limit too")
		return "", 0, "", false
	}
	if memory < 0 || swap < memory {
		t.fail(at, "memory and swap together ("+decimal(swap)+") are less than memory alone ("+limitWords(memory)+")",
			"swap is the sum of both, and needs a memory limit that is not above it")
		return "", 0, "", false
	}
	if !v2 {
		value, property = limit(swap, false)
		return value, property, "", true
	}
	alone, ok := SwapToV2(swap, memory)
	value, property = limit(alone, true)
	return value, property, decimal(swap) + " with swap, less " + decimal(memory) + " of memory", ok
}

// memoryLimit is the limit that will hold: the field, or what the cgroup has.
func (t *translation) memoryLimit(field *int64, v2 bool) (int64, bool) {
	switch {
	case given(field):
		return *field, true
	case t.opts.Present == nil:
		return -1, true // a new cgroup has none
	case v2:
		return t.presentNumber("memory", "memory.max")
	}
	return t.presentNumber("memory", "memory.limit_in_bytes")
}

func limitWords(n int64) string {
	if n < 0 {
		return "no limit"
	}
	return decimal(n)
}

// raisesSum says whether v1's sum must be written before the limit. A new
// cgroup has no limits, where the limit has to come first.
func (t *translation) raisesSum(swap int64) bool {
	now, ok := t.presentNumber("memory", "memory.memsw.limit_in_bytes")
	if !ok || now < 0 {
		return false
	}
	return swap < 0 || swap > now
}

func (t *translation) reservation(n *int64) {
	const at = "/memory/reservation"
	if !given(n) || !t.checkLimit(at, *n) {
		return
	}
	p, ok := t.place(at, at)
	if !ok {
		return
	}
	value, property := limit(*n, p.v2)
	t.set(at, at, value, "", property)
}

func (t *translation) kernelMemory(m *specs.LinuxMemory) {
	t.kernel(m.Kernel) //lint:ignore SA1019 configs still have it, and the drop of a field must be said
	t.kernelTCP(m.KernelTCP)
}

// kernel sets a limit that the spec allows to ignore: it is obsolete since
// Linux 5.4, and since 5.16 the file is there but every write fails with
// EOPNOTSUPP, which an optional write passes over.
func (t *translation) kernel(n *int64) {
	const at = "/memory/kernel"
	if !given(n) || !t.checkLimit(at, *n) {
		return
	}
	p, ok := t.place(at, at)
	if !ok {
		return
	}
	if p.v2 || !t.has(p.Controller, p.Files[0]) {
		t.warn(at, "obsolete and left out: this kernel counts kernel memory to the memory limit")
		return
	}
	t.warn(at, "obsolete: kernels since 5.16 ignore it")
	value, _ := limit(*n, false)
	it := t.item(p, p.Files[0], at, value, "", nil)
	it.write.Optional = true
	t.items = append(t.items, it)
}

func (t *translation) kernelTCP(n *int64) {
	const at = "/memory/kernelTCP"
	if !given(n) || !t.checkLimit(at, *n) {
		return
	}
	p, ok := t.place(at, at)
	if !ok || p.v2 && *n == -1 {
		return // no limit is what v2 has
	}
	value, _ := limit(*n, false)
	t.set(at, at, value, "", nil)
}

func (t *translation) swappiness(n *uint64) {
	const at = "/memory/swappiness"
	if n == nil || *n == math.MaxUint64 { // old engines write (uint64)-1 for "not set"
		return
	}
	if *n > 100 {
		t.fail(at, decimal(*n)+" is out of range", "0 to 100")
		return
	}
	t.set(at, at, decimal(*n), "", nil)
}

func (t *translation) oomKiller(disable *bool) {
	const at = "/memory/disableOOMKiller"
	if disable == nil {
		return
	}
	p, ok := t.place(at, at)
	if !ok || p.v2 && !*disable {
		return // v2's OOM killer cannot be off
	}
	t.set(at, at, digit(*disable), "", nil)
}

func (t *translation) useHierarchy(use *bool) {
	const at = "/memory/useHierarchy"
	if use == nil {
		return
	}
	p, ok := t.place(at, at)
	if !ok || p.v2 && *use {
		return // v2 is always hierarchical
	}
	// Since 5.11 v1 is too, and the file takes only 1.
	t.set(at, at, digit(*use), "", nil)
}

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
