package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cmd/berth/internal/box"
	"github.com/berth-runtime/berth/cmd/berth/internal/box/changes"
	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/launch"
	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/internal/sys"
	"golang.org/x/sys/unix"
)

// The exit statuses of timeout(1) and env(1), for what is no status of the command.
const (
	timedOut      = 124
	noBox         = 125
	notExecutable = 126
	notFound      = 127
)

func (p *program) box(o *boxOptions, args []string) error {
	began := time.Now()
	if o.changes.apply != "" {
		return p.applyChanges(o, args)
	}
	front, err := p.newForeground()
	if err != nil {
		return &exitStatus{code: noBox, err: err, plain: true}
	}
	defer front.close()
	defer o.changes.close()
	defer o.closeNetwork()
	fail := func(err error) error {
		p.noteChroot(err, nil)
		return &exitStatus{code: boxStatus(err), err: errors.New("berth box: " + o.Blame(err.Error())), plain: true}
	}
	r, id, options, err := p.prepareBox(o, args, front)
	if err != nil {
		return fail(err)
	}
	if o.dryRun {
		if err := o.outline(r, id, options); err != nil {
			return fail(err)
		}
		return nil
	}
	created, err := o.create(r, id, options)
	if err != nil {
		return fail(err)
	}
	defer created.Close()
	if o.Timeout > 0 {
		err = front.limit(o.Timeout)
	}
	if err == nil {
		err = o.connect(created.Process().Pid)
	}
	if err == nil {
		err = created.Go()
	}
	if err != nil {
		created.Abandon()
		return fail(err)
	}
	front.confine = func() { p.warnOf(created.Confine()) }
	status, err := front.wait(created.Process())
	front.close()
	if err != nil {
		return fail(err)
	}
	code := exitCode(status)
	if front.expired {
		code = timedOut
	}
	report := box.Report{Hidden: o.Hidden, ID: created.ID, Status: code, TimedOut: front.expired, Wall: time.Since(began)}
	if status.Signaled() {
		report.Signal = unix.SignalName(status.Signal())
	}
	err = errors.Join(o.changes.tell(), p.reportBox(o, created, &report, status), o.learn.write(front, o.denials))
	if err != nil {
		return fail(err)
	}
	if code != 0 {
		return &exitStatus{code: code}
	}
	return nil
}

// prepareBox finds what a box is to be made of.
func (p *program) prepareBox(o *boxOptions, args []string, front *foreground) (*container.Runtime, string, *container.CreateOptions, error) {
	none := func(err error) (*container.Runtime, string, *container.CreateOptions, error) {
		return nil, "", nil, err
	}
	args, err := o.useImage(front, args)
	if err != nil {
		return none(err)
	}
	if err := o.complete(args); err != nil {
		return none(err)
	}
	if !o.dryRun {
		if err := o.open(); err != nil {
			return none(err)
		}
	}
	if err := o.makeNetwork(); err != nil {
		return none(err)
	}
	caller, err := box.Here()
	if err != nil {
		return none(err)
	}
	// With a terminal for all three, the command gets one of its own: keys, job
	// control and sizes work as without the box.
	o.Terminal = terminal.IsTerminal(0) && terminal.IsTerminal(1) && terminal.IsTerminal(2)
	front.whole = !o.Terminal
	o.KeepsChanges = o.changes.wanted()
	s, err := o.Spec(caller)
	if err != nil {
		return none(err)
	}
	r, err := p.runtime()
	if err != nil {
		return none(err)
	}
	r.Warn = func(message string) { fmt.Fprintln(os.Stderr, "berth box:", escape.Message(o.Blame(message))) }
	if caller.UID != 0 && !o.Limited() {
		// Without one of our own we are no worse off than the caller.
		r.IgnoreCgroupErrors = container.Everybody
	}
	id := "box-ID"
	if !o.dryRun {
		if id, err = boxID(); err != nil {
			return none(err)
		}
	}
	options := &container.CreateOptions{
		Bundle: filepath.Join(r.Root, id), Spec: s, Init: true, Attached: true,
		KeepAffinity: true, // "taskset berth box" is for the command
		IO:           container.IO{Stdio: [3]uintptr{0, 1, 2}},
	}
	if o.Terminal {
		options.Console = front.console
	}
	// The kernel has one listener for a process, and boxes in it name what they refuse.
	if !o.dryRun && (o.explain && !o.Nest && o.Seccomp != nil || o.learn.wanted()) {
		o.denials = explainDenials(&options.IO)
		o.denials.Record, options.Learn = o.learn.record, o.learn.wanted()
		o.denials.Default, o.denials.Capabilities = o.seccomp == "default", o.Capabilities()
	}
	switch {
	case o.changes.wanted():
		options.Scratch = o.changes.take
	case len(o.Blanked) > 0:
		options.Scratch = o.blank
	}
	return r, id, options, nil
}

// open opens what is written to in the end: a box may be given the directory that it lies in, and
// at its end a link could be there by that name.
func (o *boxOptions) open() (err error) {
	if o.into != "" {
		if o.file, err = openOutput(o.into, 0o644); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	return errors.Join(o.changes.prepare(), o.learn.prepare())
}

// outline tells what the box would be.
func (o *boxOptions) outline(r *container.Runtime, id string, options *container.CreateOptions) error {
	f, err := r.Foresee(id, options, 0)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(o.Outline(f, o.networkInWords()))
	return err
}

// create makes the container, with its command about to run.
func (o *boxOptions) create(r *container.Runtime, id string, options *container.CreateOptions) (*container.Created, error) {
	created, err := r.Create(id, options)
	if err != nil {
		return nil, err
	}
	if err := o.changes.begin(); err != nil {
		created.Abandon()
		created.Close()
		return nil, err
	}
	return created, nil
}

// blank puts the password files without the passwords into the memory for what is written.
func (o *boxOptions) blank(s *container.Scratch) error {
	defer s.Close()
	var archive bytes.Buffer
	if err := o.WriteBlanked(&archive); err != nil {
		return fmt.Errorf("hide the passwords of this machine: %w (--show /etc/shadow)", err)
	}
	if err := changes.Fill(s, &archive); err != nil {
		return fmt.Errorf("hide the passwords of this machine: %w (--show /etc/shadow)", err)
	}
	return nil
}

func boxID() (string, error) {
	random, err := sys.Random()
	return fmt.Sprintf("box-%08x", random>>32), err
}

// reportBox tells what the box used, and removes it.
func (p *program) reportBox(o *boxOptions, created *container.Created, report *box.Report, status unix.WaitStatus) error {
	if o.report == "" && terminal.IsTerminal(2) {
		o.report = "text"
	}
	if o.explain && o.denials != nil {
		report.Denied = o.denials.All()
	}
	told := o.account(created, report)
	if o.keep {
		told = errors.Join(told, created.NoteEnd(status))
		fmt.Fprintf(os.Stderr, "berth box: kept as %s; berth delete %s removes it\n", created.ID, created.ID)
		return told
	}
	return errors.Join(told, created.Delete(true))
}

// account tells what the box used, or, to who has not asked for that, what a limit ended.
func (o *boxOptions) account(created *container.Created, report *box.Report) error {
	var stats *cgroup.Stats
	var err error
	switch {
	case o.report == "none", o.report == "" && report.Status == 0 && !o.Limited():
		return nil
	case o.report == "":
		stats, err = created.Account(cgroup.Memory, cgroup.Pids)
	default:
		stats, err = created.Account(cgroup.CPU, cgroup.Memory, cgroup.IO, cgroup.Pids)
	}
	if err != nil && o.report != "" {
		fmt.Fprintln(os.Stderr, "berth box: what it used is not known:", escape.Message(err.Error()))
	}
	report.Fill(&o.Options, stats, &created.Process().Usage)
	return o.tell(report)
}

func (o *boxOptions) tell(report *box.Report) error {
	var text []byte
	switch o.report {
	case "json":
		text = report.JSON()
	case "text":
		text = []byte(report.Text())
	default:
		if text = []byte(report.Stopped()); len(text) == 0 {
			return nil
		}
	}
	if o.file == nil {
		_, err := os.Stderr.Write(text)
		return err
	}
	err := replaceContents(o.file, func(w io.Writer) error { _, err := w.Write(text); return err })
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

// noCommand is the error for an empty name, which is one that is not found.
var noCommand = &launch.Error{Text: `exec: ""`, Errno: unix.ENOENT, Exec: true}

// boxStatus is the exit status of a command that could not be run.
func boxStatus(err error) int {
	var failed *launch.Error
	switch {
	case !errors.As(err, &failed) || !failed.Exec:
		return noBox
	case failed.Errno == unix.ENOENT:
		return notFound
	}
	return notExecutable
}
