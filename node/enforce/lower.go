package enforce

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/config/resource"
	"github.com/berth-runtime/berth/node/enforce/record"
	"github.com/berth-runtime/berth/node/plan"
)

// StuckError is a limit of memory that was not lowered, because what is used
// could not be reclaimed. Everything is as it was before.
type StuckError struct {
	Group    string
	Limit    int64
	Used     int64
	Pressure float64 // percent of the last 10 s; negative where it is not known
	Why      string
}

func (e *StuckError) Error() string {
	text := fmt.Sprintf("%s still uses %s of memory: %s", e.Group, resource.Memory.Human(e.Used), e.Why)
	if e.Pressure >= 0 {
		text += fmt.Sprintf(" (memory pressure %.0f%%)", e.Pressure)
	}
	return text + "; nothing was killed and the former limit holds again: end something there, or allow more"
}

// lower sets a limit of memory by set. Where more is used than that, memory is
// reclaimed first. On version 2 a limit below the use lets the kernel kill, and
// memory.high reclaims and does not kill: so that is brought down in steps, while
// the pressure is watched, and the limit follows when the use is below it. On
// version 1 the kernel reclaims by itself when the limit is written, and refuses
// (EBUSY) what it can't; that is tried until the deadline.
func (e *Engine) lower(ctx context.Context, p *plan.Plan, s plan.Step, set func() error) error {
	limit, err := strconv.ParseInt(s.Write.Value, 10, 64)
	if err != nil {
		return set()
	}
	used := e.used(s.Group)
	if used <= limit {
		return set()
	}
	e.say("%s uses %s and is to have %s: reclaiming", s.Group, resource.Memory.Human(used), resource.Memory.Human(limit))
	ctx, cancel := context.WithTimeout(ctx, p.Config.ReclaimDeadline)
	defer cancel()
	if s.Write.V2 {
		return e.lowerByHigh(ctx, p, s, limit, used, set)
	}
	return e.lowerV1(ctx, s, limit, set)
}

func (e *Engine) used(group string) int64 {
	for _, file := range []string{"memory.current", "memory.usage_in_bytes"} {
		if n, err := strconv.ParseInt(e.file(group, file), 10, 64); err == nil {
			return n
		}
	}
	return 0
}

// pressure is the share of the last 10 s in which some task waited for memory.
func (e *Engine) pressure(group string) float64 {
	g, err := e.Machine.Cgroups.Open(group)
	if err != nil {
		return -1
	}
	defer g.Close()
	stats, err := g.Stats(cgroup.Memory)
	if err != nil || stats.Memory == nil || stats.Memory.Pressure == nil || stats.Memory.Pressure.Some == nil {
		return -1
	}
	return stats.Memory.Pressure.Some.Avg10
}

// throttled is the pressure of our own cgroup where that is below a group whose memory is being
// reclaimed: what holds us up there holds up the end of it, too. It is -1 elsewhere, and where it
// is not known.
func (e *Engine) throttled(group string) float64 {
	own, err := e.Machine.Cgroups.OfProcess(os.Getpid())
	if err != nil {
		return -1
	}
	defer own.Close()
	if at := own.Path(); at != group && !strings.HasPrefix(at, strings.TrimSuffix(group, "/")+"/") {
		return -1
	}
	return e.pressure(own.Path())
}

const lowerSteps = 8

func (e *Engine) lowerByHigh(ctx context.Context, p *plan.Plan, s plan.Step, limit, used int64, set func() error) (err error) {
	throttle, release, err := e.high(p, s)
	if err != nil {
		return err
	}
	// The deadline does not stop us from giving back.
	defer func() {
		if err2 := release(); err == nil {
			err = err2
		}
	}()
	most, _ := p.Config.ReclaimPressure.In(100, 100)
	from := used
	for i := int64(1); i <= lowerSteps; i++ {
		goal := from - (from-limit)*i/lowerSteps
		goal -= goal % max(p.Facts.PageSize, 1)
		if err := throttle(ctx, goal); err != nil && ctx.Err() == nil {
			return err
		}
		stuck := ""
		reached := e.await(ctx, p.Config.ReclaimDeadline, func() bool {
			if pressure := e.pressure(s.Group); pressure > float64(most) {
				stuck = fmt.Sprintf("the pressure rose above reclaim-pressure (%d%%)", most)
				return true
			}
			if e.throttled(s.Group) > float64(most) {
				stuck = "berth-node itself is in this cgroup and is throttled by its memory.high (run it in a slice of its own, as berth-node.service does)"
				return true
			}
			return e.used(s.Group) <= goal
		})
		if !reached {
			stuck = fmt.Sprintf("reclaim-deadline (%s) is over", p.Config.ReclaimDeadline)
		}
		if stuck != "" && e.used(s.Group) > limit {
			return &StuckError{Group: s.Group, Limit: limit, Used: e.used(s.Group), Pressure: e.pressure(s.Group), Why: stuck}
		}
	}
	return set()
}

// high gives the means to set memory.high for a while, and to give it back: a file
// of a cgroup that is ours, or the property of a unit. It is on record, so that it
// does not stay when we are killed.
func (e *Engine) high(p *plan.Plan, s plan.Step) (throttle func(context.Context, int64) error, release func() error, err error) {
	high := plan.Step{Kind: s.Kind, Target: s.Target, Name: "memory.high", Group: s.Group, Cause: s.Cause, Now: e.file(s.Group, "memory.high")}
	var dropIn *record.DropIn
	if s.Kind == plan.SetProperty {
		high.Name = "MemoryHigh"
		high.Now = plan.PropertyValue(p.Facts.Groups[s.Group].Properties["MemoryHigh"])
		if dropIn, err = e.dropIn(s.Target, high.Name, false); err != nil {
			return nil, nil, err
		}
	}
	if err := e.intend(high, func(c *record.Change) { c.Passing, c.DropIn = true, dropIn }); err != nil {
		return nil, nil, err
	}
	throttle = func(ctx context.Context, n int64) error {
		e.point("before lowering " + high.ID())
		if s.Kind == plan.SetProperty {
			return e.Machine.Units.Set(ctx, s.Target, config.Runtime, []ledger.Property{{Name: high.Name, Value: uint64(n)}})
		}
		g, err := e.open(s.Group)
		if err != nil {
			return err
		}
		defer g.Close()
		return g.WriteFile(high.Name, strconv.FormatInt(n, 10))
	}
	release = func() error {
		return e.undo(context.Background(), func(c *record.Change) bool { return c.ID() == high.ID() })
	}
	return throttle, release, nil
}

// lowerV1 lets the kernel reclaim, until it takes the limit.
func (e *Engine) lowerV1(ctx context.Context, s plan.Step, limit int64, set func() error) error {
	var last error
	if e.await(ctx, time.Duration(math.MaxInt64), func() bool { last = set(); return last == nil || ctx.Err() != nil }) && last == nil {
		return nil
	}
	stuck := &StuckError{Group: s.Group, Limit: limit, Used: e.used(s.Group), Pressure: e.pressure(s.Group), Why: "reclaim-deadline is over"}
	if s.Kind == plan.SetProperty {
		// systemd has it in mind even where the kernel refused it.
		return errors.Join(stuck, e.takeBack(context.WithoutCancel(ctx), s))
	}
	return stuck
}

// takeBack gives a property the value that it had before this step, which may be
// one that an earlier plan set.
func (e *Engine) takeBack(ctx context.Context, s plan.Step) error {
	c := e.Record.Find(s.ID())
	if c == nil || c.Before == s.Now {
		return e.undo(ctx, func(other *record.Change) bool { return other.ID() == s.ID() })
	}
	value, err := propertyValue(s.Now)
	if err != nil {
		return err
	}
	return e.Machine.Units.Set(ctx, s.Target, lasting(c.Persistent), []ledger.Property{{Name: s.Name, Value: value}})
}

// fits refuses to give back a limit of memory that is below what is used now: it
// would kill, and who lowers a limit asks for that by Apply.
func (e *Engine) fits(c *record.Change) error {
	switch c.Name {
	case "MemoryMax", "memory.max", "memory.limit_in_bytes":
	default:
		return nil
	}
	before, err := strconv.ParseInt(c.Before, 10, 64)
	if used := e.used(c.Group); err == nil && used > before {
		return fmt.Errorf("it was %s before, and %s uses %s now: end something there, then undo again", resource.Memory.Human(before), c.Group, resource.Memory.Human(used))
	}
	return nil
}
