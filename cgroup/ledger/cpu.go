package ledger

import (
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

func (t *translation) cpu(c *specs.LinuxCPU) {
	if c == nil {
		return
	}
	t.sharesAndIdle(c)
	t.bandwidth(c)
	t.realtime(c)
	t.cpuset("/cpu/cpus", c.Cpus)
	t.cpuset("/cpu/mems", c.Mems)
}

// sharesAndIdle goes by the kernel's rule that an idle group has no shares: a
// write to cpu.weight or cpu.shares fails with EINVAL while cpu.idle is 1
// (sched_group_set_shares), and turning idle off gives the default weight.
func (t *translation) sharesAndIdle(c *specs.LinuxCPU) {
	const sharesAt, idleAt = "/cpu/shares", "/cpu/idle"
	shares := c.Shares
	if shares != nil && *shares == 0 {
		shares = nil
	}
	if c.Idle != nil && *c.Idle != 0 && *c.Idle != 1 {
		t.fail(idleAt, decimal(*c.Idle)+" is out of range", "0 or 1")
		return
	}
	idle := c.Idle != nil && *c.Idle == 1
	if idle && shares != nil {
		t.warn(sharesAt, "left out: an idle cgroup has no shares")
		shares = nil
	}
	if c.Idle != nil {
		// The property has no value for "not idle": that is any weight.
		var property any
		if idle {
			property = uint64(0)
		}
		t.set(idleAt, idleAt, decimal(*c.Idle), "", property)
	} else if now, ok := t.presentNumber("cpu", "cpu.idle"); ok && now == 1 && shares != nil {
		t.fail(sharesAt, "the cgroup is idle, and an idle cgroup has no shares", "set /cpu/idle to 0 too")
		return
	}
	if shares != nil {
		t.shares(*shares)
	}
}

func (t *translation) shares(shares uint64) {
	const at = "/cpu/shares"
	p, ok := t.place(at, at)
	if !ok {
		return
	}
	clamped := min(max(shares, minShares), maxShares)
	note := ""
	if clamped != shares {
		t.warn(at, decimal(shares)+" is out of range and treated as "+decimal(clamped))
		note = decimal(shares) + " clamped"
	}
	value := clamped
	if p.v2 {
		value = SharesToWeight(shares, t.opts.Shares)
		note = decimal(shares) + " shares are weight " + decimal(value) + " by the " + t.opts.Shares.String() + " formula"
	}
	t.set(at, at, decimal(value), note, value)
}

// bandwidth is quota, period and burst, each of which may come alone and must
// then leave the others as they are.
func (t *translation) bandwidth(c *specs.LinuxCPU) {
	quota, period := c.Quota, c.Period
	if quota != nil && *quota == 0 {
		quota = nil
	}
	if quota != nil && *quota < 0 {
		none := int64(-1) // any negative one means no limit to the kernel (tg_set_cfs_quota)
		quota = &none
	}
	if period != nil && *period == 0 {
		period = nil
	}
	if quota == nil && period == nil && c.Burst == nil {
		return
	}
	p, ok := t.place("/cpu/quota", firstPointer(quota, period))
	if !ok || !t.checkBandwidth(quota, period) {
		return
	}
	var items []item
	if quota != nil || period != nil {
		if p.v2 {
			items = t.cpuMax(p, quota, period, "/cpu/quota", "/cpu/period")
		} else {
			items = t.cfs(p, quota, period)
		}
	}
	burst, burstFirst, ok := t.burst(p, c.Burst, quota)
	switch {
	case !ok:
	case burst == nil:
		t.items = append(t.items, items...)
	case burstFirst:
		t.items = append(append(t.items, *burst), items...)
	default:
		t.items = append(append(t.items, items...), *burst)
	}
}

func firstPointer(quota *int64, period *uint64) string {
	switch {
	case quota != nil:
		return "/cpu/quota"
	case period != nil:
		return "/cpu/period"
	}
	return "/cpu/burst"
}

// checkBandwidth has the kernel's bounds (tg_set_cfs_bandwidth): at least 1 ms
// for both and at most 1 s for the period, which it answers with a bare EINVAL.
func (t *translation) checkBandwidth(quota *int64, period *uint64) bool {
	ok := true
	if quota != nil && *quota != -1 && *quota < 1000 {
		t.fail("/cpu/quota", decimal(*quota)+" is out of range", "at least 1000 microseconds, or -1")
		ok = false
	}
	if period != nil && (*period < 1000 || *period > 1000000) {
		t.fail("/cpu/period", decimal(*period)+" is out of range", "1000 to 1000000 microseconds")
		ok = false
	}
	return ok
}

// bandwidthNow is what the cgroup has, or what a new one has.
func (t *translation) bandwidthNow(v2 bool) (quota int64, period uint64) {
	quota, period = -1, defaultPeriod
	if v2 {
		if s, ok := t.present("cpu", "cpu.max"); ok {
			q, p, _ := strings.Cut(strings.TrimSpace(s), " ")
			if n, ok := parseLimit(q); ok {
				quota = n
			}
			if n, err := strconv.ParseUint(p, 10, 64); err == nil {
				period = n
			}
		}
		return quota, period
	}
	if n, ok := t.presentNumber("cpu", "cpu.cfs_quota_us"); ok {
		quota = n
	}
	if n, ok := t.presentNumber("cpu", "cpu.cfs_period_us"); ok && n > 0 {
		period = uint64(n)
	}
	return quota, period
}

// cpuMax is v2's one file for both. A quota alone is written alone, which keeps
// the period (cpu_period_quota_parse); a period alone has to repeat the quota.
func (t *translation) cpuMax(p where, quota *int64, period *uint64, quotaAt, periodAt string) []item {
	file, ok := t.file(p, firstPointer(quota, period))
	if !ok {
		return nil
	}
	nowQuota, nowPeriod := t.bandwidthNow(true)
	at, note := quotaAt, ""
	wantQuota, wantPeriod := nowQuota, nowPeriod
	if quota != nil {
		wantQuota = *quota
	} else {
		at, note = periodAt, "the quota is unchanged"
	}
	value, _ := limit(wantQuota, true)
	if period != nil {
		wantPeriod = *period
		value += " " + decimal(*period)
	} else {
		note = "the period is unchanged"
	}
	it := t.item(p, file, at, value, note, nil)
	t.quotaProperties(&it, quotaAt, periodAt, wantQuota, wantPeriod, period != nil)
	return []item{it}
}

// quotaProperties adds the properties for the bandwidth, and has the file say what
// systemd will say at each daemon-reload. systemd before 242 knows no period; there
// the file alone carries it, until systemd writes its own.
func (t *translation) quotaProperties(it *item, quotaAt, periodAt string, quota int64, period uint64, periodSet bool) {
	perSecond := entry("/cpu/quota").V2.Properties[0]
	inPeriod := entry("/cpu/period").V2.Properties[0]
	if !t.wants(perSecond) {
		return
	}
	usec, rounded := QuotaPerSecond(quota, period)
	note := ""
	if quota >= 0 {
		note = decimal(quota) + " in " + decimal(period) + " is " + decimal(usec) + " in a second"
	}
	if rounded {
		note += ", rounded up to 10 ms"
		whole := QuotaFromPerSecond(usec, period)
		t.warn(quotaAt, "systemd keeps whole percents: "+decimal(quota)+" becomes "+decimal(whole)+" in a period of "+decimal(period))
		_, rest, two := strings.Cut(it.write.Value, " ")
		it.write.Value, _ = limit(whole, it.write.V2)
		if two {
			it.write.Value += " " + rest
		}
	}
	it.properties = append(it.properties, Property{Name: perSecond.Name, Value: usec, Pointer: quotaAt, Note: note})
	if !periodSet {
		return
	}
	if !t.wants(inPeriod) {
		t.warn(periodAt, "systemd "+decimal(t.layout.Systemd)+" has no "+inPeriod.Name+" (since "+decimal(inPeriod.Since)+
			"): the period is written to the file, and systemd may put its own back")
		return
	}
	it.properties = append(it.properties, Property{Name: inPeriod.Name, Value: period, Pointer: periodAt})
}

// cfs is v1's two files. Where the parent has a limit the kernel refuses a
// quota that is a greater share of the period than the parent's
// (tg_cfs_schedulable_down), at any moment in between. A period that grows
// makes the share smaller and goes first, one that shrinks goes last.
func (t *translation) cfs(p where, quota *int64, period *uint64) []item {
	nowQuota, nowPeriod := t.bandwidthNow(false)
	wantQuota, wantPeriod := nowQuota, nowPeriod
	var items []item
	if quota != nil {
		wantQuota = *quota
		if f, ok := t.file(p, "/cpu/quota"); ok {
			items = append(items, t.item(p, f, "/cpu/quota", decimal(*quota), "", nil))
		}
	}
	if period != nil {
		wantPeriod = *period
		pp, ok := t.place("/cpu/period", "/cpu/period")
		if !ok {
			return nil
		}
		if f, ok := t.file(pp, "/cpu/period"); ok {
			items = append(items, t.item(pp, f, "/cpu/period", decimal(*period), "", nil))
		}
	}
	if len(items) == 0 {
		return nil
	}
	// The properties belong to both files, and ride on the quota's where that is set.
	t.quotaProperties(&items[0], "/cpu/quota", "/cpu/period", wantQuota, wantPeriod, period != nil)
	if len(items) == 2 && (wantPeriod > nowPeriod || nowQuota < 0) {
		items[0], items[1] = items[1], items[0]
	}
	return items
}

// burst goes before a quota that is lowered below the present burst, else after
// the quota: the kernel refuses a burst above the quota at any moment.
func (t *translation) burst(p where, burst *uint64, quota *int64) (it *item, first, ok bool) {
	const at = "/cpu/burst"
	e := entry(at)
	bp := where{&e.V1, false}
	if p.v2 {
		bp = where{&e.V2, true}
	}
	now, known := t.presentNumber("cpu", bp.Files[0])
	want := quota
	if want == nil {
		q, _ := t.bandwidthNow(p.v2)
		want = &q
	}
	if burst == nil {
		if known && quota != nil && *quota > 0 && now > *quota {
			t.fail("/cpu/quota", decimal(*quota)+" is below the present burst of "+decimal(now), "set /cpu/burst too")
			return nil, false, false
		}
		return nil, false, true
	}
	if *want >= 0 && *burst > uint64(*want) {
		t.fail(at, decimal(*burst)+" is above the quota of "+decimal(*want), "a burst is at most the quota")
		return nil, false, false
	}
	// A burst of 0 is what a kernel without the file (before 5.14) does.
	if !t.has(bp.Controller, bp.Files[0]) && *burst == 0 {
		return nil, false, true
	}
	f, found := t.file(bp, at)
	if !found {
		return nil, false, false
	}
	made := t.item(bp, f, at, decimal(*burst), "", nil)
	return &made, known && int64(*burst) < now, true
}

// realtime has v1's pair, with the same rule on order as cfs: runtime is a
// share of the period that must at no moment be more than the parent gives.
func (t *translation) realtime(c *specs.LinuxCPU) {
	const runtimeAt, periodAt = "/cpu/realtimeRuntime", "/cpu/realtimePeriod"
	before := len(t.items)
	if c.RealtimeRuntime != nil {
		if !t.checkLimit(runtimeAt, *c.RealtimeRuntime) {
			return
		}
		t.set(runtimeAt, runtimeAt, decimal(*c.RealtimeRuntime), "", nil)
	}
	if c.RealtimePeriod == nil || *c.RealtimePeriod == 0 {
		return
	}
	t.set(periodAt, periodAt, decimal(*c.RealtimePeriod), "", nil)
	if len(t.items)-before < 2 {
		return
	}
	now, ok := t.presentNumber("cpu", "cpu.rt_period_us")
	if !ok {
		now = 1000000 // sysctl_sched_rt_period; a new cgroup has a runtime of 0
	}
	if *c.RealtimePeriod >= uint64(now) || t.opts.Present == nil {
		t.items[before], t.items[before+1] = t.items[before+1], t.items[before]
	}
}

func (t *translation) cpuset(at, list string) {
	if list == "" {
		return
	}
	l, err := ParseList(list)
	if err != nil {
		t.fail(at, err.Error(), `a list is written as "0-3,7"`)
		return
	}
	if l.Len() == 0 {
		return
	}
	canonical := l.String()
	note := ""
	if canonical != list {
		note = "the same list in the kernel's own form"
	}
	t.set(at, at, canonical, note, l.Bitmap())
}
