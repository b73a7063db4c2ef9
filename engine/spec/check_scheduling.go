package spec

import (
	"math"
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// scheduler checks what sched_setattr(2) would refuse, or silently ignore.
func (c *checker) scheduler(p place, s *specs.Scheduler) {
	switch s.Policy {
	case specs.SchedOther, specs.SchedBatch, specs.SchedIdle, specs.SchedFIFO, specs.SchedRR, specs.SchedDeadline:
	case specs.SchedISO:
		c.bad(p.at("policy"), "SCHED_ISO is only reserved: no Linux kernel implements it")
		return
	default:
		c.bad(p.at("policy"), "unknown policy "+quote(string(s.Policy))+", "+
			oneOf("SCHED_OTHER", "SCHED_BATCH", "SCHED_IDLE", "SCHED_FIFO", "SCHED_RR", "SCHED_DEADLINE"))
		return
	}
	realtime := s.Policy == specs.SchedFIFO || s.Policy == specs.SchedRR
	deadline := s.Policy == specs.SchedDeadline
	if realtime {
		c.within(p.at("priority"), int64(s.Priority), 1, 99)
	} else if s.Priority != 0 {
		c.bad(p.at("priority"), "is for SCHED_FIFO and SCHED_RR only, the policy is "+string(s.Policy))
	}
	switch {
	case s.Nice == 0:
	case realtime || deadline:
		// The kernel passes over it, and so do the other runtimes.
		c.warn(p.at("nice"), "has no meaning for "+string(s.Policy)+": it is left out")
	default:
		c.within(p.at("nice"), int64(s.Nice), -20, 19)
	}
	c.schedulerFlags(p.at("flags"), s.Flags, deadline)
	if deadline {
		c.deadline(p, s)
		return
	}
	for _, v := range [3]struct {
		key   string
		value uint64
	}{{"runtime", s.Runtime}, {"deadline", s.Deadline}, {"period", s.Period}} {
		if v.value != 0 {
			c.bad(p.at(v.key), "is for SCHED_DEADLINE only, the policy is "+string(s.Policy))
		}
	}
}

func (c *checker) schedulerFlags(p place, flags []specs.LinuxSchedulerFlag, deadline bool) {
	for i, flag := range flags {
		switch flag {
		case specs.SchedFlagResetOnFork, specs.SchedFlagKeepPolicy, specs.SchedFlagKeepParams,
			specs.SchedFlagUtilClampMin, specs.SchedFlagUtilClampMax:
		case specs.SchedFlagReclaim, specs.SchedFlagDLOverrun:
			if !deadline {
				c.bad(p.nth(i), string(flag)+" is for SCHED_DEADLINE only")
			}
		default:
			c.bad(p.nth(i), "unknown flag "+quote(string(flag))+", "+
				oneOf("SCHED_FLAG_RESET_ON_FORK", "SCHED_FLAG_RECLAIM", "SCHED_FLAG_DL_OVERRUN", "SCHED_FLAG_KEEP_POLICY",
					"SCHED_FLAG_KEEP_PARAMS", "SCHED_FLAG_UTIL_CLAMP_MIN", "SCHED_FLAG_UTIL_CLAMP_MAX"))
		}
	}
}

// deadline checks the kernel's rule for SCHED_DEADLINE (__checkparam_dl):
// 1024 <= runtime <= deadline <= period, where a period of 0 is the deadline,
// and none of them has the top bit set.
func (c *checker) deadline(p place, s *specs.Scheduler) {
	const least = 1 << 10 // DL_SCALE: finer values are lost in the kernel's arithmetic
	period := s.Period
	if period == 0 {
		period = s.Deadline
	}
	switch {
	case s.Runtime < least:
		c.bad(p.at("runtime"), "SCHED_DEADLINE needs at least 1024 nanoseconds, found "+strconv.FormatUint(s.Runtime, 10))
	case s.Deadline < s.Runtime:
		c.bad(p.at("deadline"), "must be no shorter than the runtime, "+strconv.FormatUint(s.Runtime, 10)+
			", found "+strconv.FormatUint(s.Deadline, 10))
	case period < s.Deadline:
		c.bad(p.at("period"), "must be no shorter than the deadline, "+strconv.FormatUint(s.Deadline, 10)+
			", found "+strconv.FormatUint(period, 10))
	case period > math.MaxInt64:
		c.bad(p.at("period"), "is beyond the kernel's limit of 9223372036854775807")
	}
}

func (c *checker) ioPriority(p place, io *specs.LinuxIOPriority) {
	switch io.Class {
	case specs.IOPRIO_CLASS_RT, specs.IOPRIO_CLASS_BE, specs.IOPRIO_CLASS_IDLE:
	default:
		c.bad(p.at("class"), "unknown class "+quote(string(io.Class))+", "+
			oneOf("IOPRIO_CLASS_RT", "IOPRIO_CLASS_BE", "IOPRIO_CLASS_IDLE"))
	}
	c.within(p.at("priority"), int64(io.Priority), 0, 7)
}
