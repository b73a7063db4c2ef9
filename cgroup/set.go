package cgroup

import (
	"errors"
	"strings"

	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Report says what was done otherwise than the resources asked for.
type Report struct {
	// Warnings are fields that were left out without harm, or changed so that they fit.
	Warnings []ledger.Warning
	// Differences are values that the kernel rounded or clamped.
	Differences []Difference
}

// Set gives the group the limits of a resources object. What is not in it
// stays as it is. A field that this host cannot honour is an error (of type
// ledger.Errors, which names them all), and then nothing is changed. Where the
// kernel refuses a value, what was written before it is taken back.
func (g *Group) Set(resources *specs.LinuxResources) (Report, error) {
	return g.set(resources, nil)
}

// Through is another program that sets limits and has to know of them: systemd, for
// the cgroup of a unit.
type Through struct {
	// Layout is the host's as he sees it, with his version.
	Layout ledger.Layout
	// Slice is set where the unit is a slice.
	Slice bool
	// Set is given what he has properties for. devices is nil where their rules
	// stay as they are; they are enforced here besides. What he has been given is
	// taken back by undo, should a file be refused after that.
	Set func(properties []ledger.Property, devices *device.Policy) (undo func() error, err error)
}

// SetThrough is Set for a group that has a manager: what he has properties for
// goes to him, since he would undo what is done behind his back, and the rest to
// the files after that.
func (g *Group) SetThrough(resources *specs.LinuxResources, t Through) (Report, error) {
	return g.set(resources, &t)
}

func (g *Group) set(resources *specs.LinuxResources, t *Through) (Report, error) {
	var properties []ledger.Property
	var writes []ledger.Write
	var warnings []ledger.Warning
	var err error
	options := ledger.Options{Shares: g.host.Shares, Present: g.present}
	if t == nil {
		writes, warnings, err = ledger.Translate(resources, g.Layout(), options)
	} else {
		layout := t.Layout
		layout.Files, options.Slice = g.hasFile, t.Slice
		properties, writes, warnings, err = ledger.Properties(resources, layout, options)
	}
	report := Report{Warnings: warnings}
	var wrong ledger.Errors
	if err != nil && !errors.As(err, &wrong) {
		return report, err
	}
	var devices *device.Policy
	if resources != nil && len(resources.Devices) > 0 {
		var also ledger.Errors
		policy, err := device.Fold(resources.Devices)
		if errors.As(err, &also) {
			wrong = append(wrong, also...)
		} else if err != nil {
			return report, err
		}
		devices = &policy
	}
	if len(wrong) > 0 {
		return report, wrong
	}
	undo := func() error { return nil }
	if t != nil && (len(properties) > 0 || devices != nil) {
		if undo, err = t.Set(properties, devices); err != nil {
			return report, err
		}
	}
	var before past
	if report.Differences, err = g.apply(writes, &before); err == nil && devices != nil {
		err = g.SetDevices(*devices)
	}
	if err != nil {
		report.Differences = nil
		// The files first, as they were written last.
		err = takenBack(err, func() error { return errors.Join(before.restore(), undo()) })
	}
	return report, err
}

// Layout tells the ledger where the host's controllers are.
func (h *Host) Layout() ledger.Layout {
	var l ledger.Layout
	for i := range h.hierarchies {
		if home := &h.hierarchies[i]; home.Version == 2 {
			// Not nil: version 2 is there, also where all controllers are on version 1.
			l.Unified = append(make([]string, 0, len(home.Controllers)), home.Controllers...)
		} else {
			l.Legacy = append(l.Legacy, home.Controllers...)
		}
	}
	return l
}

// Layout is the host's, with the knowledge of which files this group has. A
// version 2 controller that is asked for and not enabled is enabled then.
func (g *Group) Layout() ledger.Layout {
	l := g.host.Layout()
	l.Files = g.hasFile
	return l
}

func (g *Group) hasFile(controller, name string) bool {
	n := g.fileNode(controller)
	if n == nil {
		return false
	}
	dir, err := g.open(n)
	if err != nil {
		return false
	}
	if unix.Faccessat(dir, n.file(name), unix.F_OK, 0) == nil {
		return true
	}
	if n.Version == 1 || controller == "cgroup" || g.enable(n, []string{controller}, true) != nil {
		return false
	}
	return unix.Faccessat(dir, n.file(name), unix.F_OK, 0) == nil
}

// fileNode finds the directory of a controller, with "cgroup" for the files
// that version 2 has without one.
func (g *Group) fileNode(controller string) *node {
	if controller == "cgroup" {
		return g.unified()
	}
	return g.node(controller)
}

// present reads a file of the group for the ledger.
func (g *Group) present(controller, file string) (string, bool) {
	n := g.fileNode(controller)
	if n == nil {
		return "", false
	}
	var buf [1024]byte
	text, err := g.read(n, file, buf[:])
	if err != nil {
		return "", false
	}
	return strings.TrimSuffix(string(text), "\n"), true
}
