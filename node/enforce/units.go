package enforce

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/internal/atomicfile"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/enforce/record"
	"github.com/berth-runtime/berth/node/plan"
	"golang.org/x/sys/unix"
)

func (e *Engine) startSlice(ctx context.Context, s plan.Step) error {
	if err := e.intend(s, nil); err != nil {
		return err
	}
	return e.Machine.Units.Activate(ctx, s.Target)
}

// stopSlice stops a slice that was started, where nothing uses it: stopping a
// slice stops all units in it.
func (e *Engine) stopSlice(ctx context.Context, c *record.Change) error {
	if c.Before == "active" {
		return nil
	}
	g, err := e.Machine.Cgroups.Open(c.Group)
	if err != nil {
		return e.Machine.Units.Stop(ctx, c.Target)
	}
	defer g.Close()
	units, err := g.Children()
	if err != nil {
		return err
	}
	if len(units) > 0 {
		e.say("%s stays, since units are in it: %s", c.Target, units[0])
		return nil
	}
	return e.Machine.Units.Stop(ctx, c.Target)
}

func (e *Engine) setProperty(ctx context.Context, p *plan.Plan, s plan.Step) error {
	persistent := p.Config.Properties == config.Persistent
	dropIn, err := e.dropIn(s.Target, s.Name, persistent)
	if err != nil {
		return err
	}
	if err := e.intend(s, func(c *record.Change) { c.DropIn, c.Persistent = dropIn, persistent }); err != nil {
		return err
	}
	set := func(value ledger.Property) error {
		return e.Machine.Units.Set(ctx, s.Target, lasting(persistent), []ledger.Property{value})
	}
	if s.Memory {
		return e.lower(ctx, p, s, func() error { return e.setAndSee(ctx, s, set) })
	}
	return e.setAndSee(ctx, s, set)
}

// untilWritten is for a machine that is very busy, as it is when limits matter most.
var untilWritten = 10 * time.Second

// setAndSee sets a property and waits until the kernel's file has it: systemd
// writes the file from a queue, after it has answered, and does not say when it
// failed. It writes it also where the value is the same to it, and only the file
// was changed by another program.
func (e *Engine) setAndSee(ctx context.Context, s plan.Step, set func(ledger.Property) error) error {
	if err := set(*s.Property); err != nil {
		return err
	}
	if s.Write == nil {
		return nil
	}
	got := ""
	holds := func() bool {
		got = e.file(s.Group, s.Write.File)
		same, _ := s.Write.Took(got)
		return same && got != ""
	}
	if !e.await(ctx, untilWritten, holds) {
		return fmt.Errorf("systemd took it, but %s of %s is %q (systemd's journal may have the reason)", s.Write.File, s.Group, got)
	}
	return nil
}

// await looks until something holds. Neither systemd nor the kernel tells when.
func (e *Engine) await(ctx context.Context, limit time.Duration, holds func() bool) bool {
	until := time.Now().Add(limit)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if holds() {
			return true
		}
		if time.Now().After(until) {
			return false
		}
		if e.Tick != nil {
			e.Tick()
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// file reads a file of a cgroup; "" if there is none.
func (e *Engine) file(group, name string) string {
	g, err := e.Machine.Cgroups.Open(group)
	if err != nil {
		return ""
	}
	defer g.Close()
	text, err := g.ReadFile(name)
	if err != nil {
		return ""
	}
	return text
}

// dropIn remembers the file that systemd makes for a property of a unit
// (org.freedesktop.systemd1(5), SetUnitProperties).
func (e *Engine) dropIn(unit, property string, persistent bool) (*record.DropIn, error) {
	dir := "/run"
	if persistent {
		dir = "/etc"
	}
	d := &record.DropIn{Path: dir + "/systemd/system.control/" + unit + ".d/50-" + property + ".conf"}
	text, err := os.ReadFile(e.Machine.Root + d.Path)
	switch {
	case err == nil:
		d.Existed, d.Content = true, string(text)
	case !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("read the drop-in: %w", err)
	}
	return d, nil
}

// revertProperty sets a property to what it was, which changes the kernel's file
// at once, and then removes the drop-in that both calls made, so that nothing of
// us is left. systemd is told of that by a reload, once for all. In a slice that is
// stopped there is no file to change, and systemd (257) would make its cgroup again.
func (e *Engine) revertProperty(ctx context.Context, c *record.Change) error {
	value, err := propertyValue(c.Before)
	if err != nil {
		return err
	}
	state, err := e.Machine.Units.Properties(ctx, c.Target)
	if err != nil {
		return err
	}
	if state["ActiveState"] == "active" {
		if err := e.fits(c); err != nil {
			return err
		}
		err := e.Machine.Units.Set(ctx, c.Target, lasting(c.Persistent), []ledger.Property{{Name: c.Name, Value: value}})
		if err != nil {
			return err
		}
	}
	e.point("before the drop-in of " + c.ID())
	if c.DropIn == nil {
		return nil
	}
	file := e.Machine.Root + c.DropIn.Path
	if c.DropIn.Existed {
		return atomicfile.WriteSynced(unix.AT_FDCWD, file, []byte(c.DropIn.Content), 0o644)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// Directories that are empty now were made for it.
	for dir, n := filepath.Dir(file), 0; n < 2; dir, n = filepath.Dir(dir), n+1 {
		if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
	}
	return nil
}

// propertyValue undoes plan.PropertyValue: systemd's number for "infinity", and for
// what is not set, is the greatest.
func propertyValue(text string) (uint64, error) {
	if text == "infinity" || text == "" {
		return math.MaxUint64, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the record has %q for it", text)
	}
	return n, nil
}
