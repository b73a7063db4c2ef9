package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/enforce"
	"github.com/berth-runtime/berth/node/enforce/record"
	"github.com/berth-runtime/berth/node/machine"
	"github.com/berth-runtime/berth/node/plan"
)

// A fight is when another program keeps changing back what we fix. We stop
// answering at once then, and mend at each recheck-interval only.
const (
	fightDrifts = 20
	fightWithin = time.Minute
)

// news is what was heard since the last look.
type news struct {
	writers map[string]string // of files, by path, where they are known
	daemons bool              // one of those that have an OOM score started or ended
}

// check looks at everything, reports what is not as planned, and mends it. Without
// news it is the slow look.
func (d *Daemon) check(ctx context.Context, n *news) {
	var p *plan.Plan
	var err error
	if n == nil || n.daemons {
		p, err = d.Machine.Prepare(ctx, d.conf)
	} else {
		p, err = d.Machine.Again(ctx, d.plan)
	}
	if err != nil {
		d.failed("look", err)
		return
	}
	if len(p.Problems) > 0 {
		d.failed("look", errors.Join(p.Problems...))
		return
	}
	var drifted []plan.Step
	var waiting []string
	for _, s := range p.Changes() {
		if d.waits(p, s) {
			waiting = append(waiting, s.ID())
		} else {
			drifted = append(drifted, s)
		}
	}
	for _, s := range drifted {
		d.drift(s, n)
	}
	d.mu.Lock()
	before := d.plan
	d.plan = p
	d.state.checked, d.state.lookFailed = time.Now(), ""
	fight := d.fights()
	d.mu.Unlock()
	switch {
	case len(drifted) > 0 && fight && n != nil:
		d.failed("mend", fmt.Errorf("%d changes within %s: another program keeps changing it back; the next attempt is at the next recheck-interval (%s)",
			fightDrifts, fightWithin, d.conf.Recheck))
		return
	case len(drifted) > 0 || d.stale(p):
		d.mend(ctx, p, drifted, waiting)
	}
	if d.Machine.Units == nil && d.conf.ScoreMode == config.Set {
		d.ends.set(p.Facts.Daemons, d.Machine.Alive)
	}
	if changedPlaces(d.Machine, before, p) {
		d.listen(ctx, p)
	}
	d.settleUnmended(p)
}

// stale reports whether something is on record that the plan does not ask for, as
// the OOM score of a daemon that has ended.
func (d *Daemon) stale(p *plan.Plan) bool {
	return slices.ContainsFunc(d.engine.Record.Changes, func(c record.Change) bool {
		return c.Passing || !slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return !s.CheckOnly && s.ID() == c.ID() })
	})
}

// waits reports whether a limit of memory that could not be lowered is left alone
// now: reclaiming throttles, so it is tried again only when less is used, or the
// configuration is read again.
func (d *Daemon) waits(p *plan.Plan, s plan.Step) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, stuck := d.state.unmended[s.ID()]
	limit, err := strconv.ParseInt(s.Value, 10, 64)
	return stuck && s.Memory && err == nil && p.Facts.Groups[s.Group].Memory > limit
}

// drift reports one setting that does not hold.
func (d *Daemon) drift(s plan.Step, n *news) {
	on := d.engine.Record.Find(s.ID())
	if on == nil {
		return // it was never set: a daemon that has started, or a slice
	}
	found := s.Now
	if s.Write != nil && s.Now == s.Value {
		found = s.FileNow
	}
	by := d.who(s, n)
	d.mu.Lock()
	first := d.state.unmended[s.ID()] == ""
	if first {
		d.state.drifts[[2]string{s.Target, s.Name}]++
		d.state.recent = append(d.state.recent, time.Now())
	}
	d.mu.Unlock()
	if !first {
		return // told already, and still so
	}
	d.journal.write(Event{Name: "drift", Priority: warning,
		Message: fmt.Sprintf("%s is %s where %s wants %s; changed %s", setting(s), quote(found), s.Cause, s.Value, by),
		Fields: [][2]string{{"BERTH_NODE_TARGET", s.Target}, {"BERTH_NODE_SETTING", s.Name}, {"BERTH_NODE_WANTED", s.Value},
			{"BERTH_NODE_FOUND", found}, {"BERTH_NODE_WHO", by}, {"BERTH_NODE_CAUSE", s.Cause}}})
}

// setting names what a step sets.
func setting(s plan.Step) string {
	if s.Name == "" {
		return s.Target
	}
	return s.Target + " " + s.Name
}

func quote(value string) string {
	if value == "" {
		return "not there"
	}
	return value
}

// who says what is known of who changed a setting.
func (d *Daemon) who(s plan.Step, n *news) string {
	file := ""
	switch {
	case s.Kind == plan.SetParent:
		file = d.Machine.SettingsFile()
	case s.Kind == plan.SetParameter:
		file = d.Machine.ParameterFile(s.Target)
	case s.Kind == plan.SetScore:
		file = d.Machine.ScoreFile(s.Process.PID)
	case s.Write != nil:
		file = d.Machine.File(s.Group, s.Write.Controller, s.Write.File)
	}
	if n != nil && n.writers[file] != "" {
		return "by " + n.writers[file]
	}
	if s.Kind != plan.SetProperty {
		return "by an unknown process"
	}
	if s.Now == s.Value {
		return "past systemd, by an unknown process that wrote to the kernel's file"
	}
	// systemctl set-property leaves a drop-in; the youngest is the one.
	var youngest os.FileInfo
	path := ""
	for _, dir := range []string{"/run/systemd/system.control/", "/etc/systemd/system.control/"} {
		at := dir + s.Target + ".d/50-" + s.Name + ".conf"
		if st, err := os.Stat(d.Machine.Root + at); err == nil && (youngest == nil || st.ModTime().After(youngest.ModTime())) {
			youngest, path = st, at
		}
	}
	if youngest == nil {
		return "through systemd, by a unit file that was read again"
	}
	return fmt.Sprintf("through systemd, as by systemctl set-property (%s, written %s)", path, youngest.ModTime().Format(time.TimeOnly))
}

// mend applies the plan, and tells what came of it.
func (d *Daemon) mend(ctx context.Context, p *plan.Plan, drifted []plan.Step, waiting []string) {
	known := map[string]bool{} // of what was set before, and so has changed
	for _, s := range drifted {
		known[s.ID()] = d.engine.Record.Find(s.ID()) != nil
	}
	err := d.engine.Apply(ctx, p, waiting...)
	failed := failures(err)
	d.mu.Lock()
	for _, id := range waiting {
		failed[id] = d.state.unmended[id]
	}
	d.mu.Unlock()
	d.note(failed)
	if err != nil {
		d.failed("mend", err)
	}
	for _, s := range drifted {
		if _, still := failed[s.ID()]; still || err != nil && len(failed) == 0 || !known[s.ID()] {
			continue
		}
		d.mu.Lock()
		d.state.mended++
		d.mu.Unlock()
		d.journal.write(Event{Name: "mended", Priority: notice, Message: fmt.Sprintf("%s is %s again", setting(s), s.Value),
			Fields: [][2]string{{"BERTH_NODE_TARGET", s.Target}, {"BERTH_NODE_SETTING", s.Name}, {"BERTH_NODE_WANTED", s.Value}}})
	}
	d.notify.tell("STATUS=" + d.status())
}

// failures gives the steps that failed, by their id, with the reason.
func failures(err error) map[string]string {
	failed := map[string]string{}
	for _, e := range each(err) {
		var step *enforce.Error
		if errors.As(e, &step) {
			failed[step.Step.ID()] = step.Err.Error()
		}
	}
	return failed
}

// note remembers what of an Apply failed.
func (d *Daemon) note(failed map[string]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.unmended = failed
	if len(failed) == 0 {
		d.state.mendFailed = ""
	}
}

// each takes joined errors apart.
func each(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var list []error
		for _, e := range many.Unwrap() {
			list = append(list, each(e)...)
		}
		return list
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// failed reports what went wrong, once until it changes.
func (d *Daemon) failed(what string, err error) {
	text := err.Error()
	d.mu.Lock()
	at := &d.state.mendFailed
	if what == "look" {
		at = &d.state.lookFailed
	}
	known := *at == text
	*at = text
	d.state.failures++
	d.mu.Unlock()
	if !known {
		d.journal.write(Event{Name: "failed", Priority: failure, Message: what + ": " + text})
	}
}

// settleUnmended forgets what holds again without us.
func (d *Daemon) settleUnmended(p *plan.Plan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range p.Steps {
		if p.Steps[i].Done() {
			delete(d.state.unmended, p.Steps[i].ID())
		}
	}
	if len(p.Changes()) == 0 {
		d.state.mendFailed = ""
	}
}

// fights reports whether there were too many drifts lately; the lock is held.
func (d *Daemon) fights() bool {
	since := time.Now().Add(-fightWithin)
	d.state.recent = slices.DeleteFunc(d.state.recent, func(t time.Time) bool { return t.Before(since) })
	return len(d.state.recent) >= fightDrifts
}

// changedPlaces reports whether other files and units are to be listened to than
// before: a slice that was stopped and started has new files of the same names.
func changedPlaces(m *machine.Machine, before, now *plan.Plan) bool {
	for _, at := range now.Places {
		_, was := before.Facts.Groups[at.Path]
		if _, is := now.Facts.Groups[at.Path]; was != is {
			return true
		}
	}
	return !slices.Equal(watched(m, before), watched(m, now)) || !maps.Equal(daemonUnits(before), daemonUnits(now))
}
