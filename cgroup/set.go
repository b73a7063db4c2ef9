package cgroup

import (
	"errors"
	"io/fs"
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
	options := ledger.Options{Shares: g.host.Shares, Present: g.present}
	writes, warnings, err := ledger.Translate(resources, g.Layout(), options)
	report := Report{Warnings: warnings}
	var devices *device.Policy
	if resources != nil && len(resources.Devices) > 0 {
		policy, wrong := device.Fold(resources.Devices)
		devices, err = &policy, ledger.Join(err, wrong)
	}
	if err != nil {
		return report, err
	}
	report.Differences, err = g.Change(writes, devices)
	return report, err
}

// Change makes the writes of a translation as Apply does, and then enforces the policy of
// devices, if there is one. Where the kernel refuses any of it, what was written before is
// taken back, which takes to read each file first.
func (g *Group) Change(writes []ledger.Write, devices *device.Policy) ([]Difference, error) {
	var before past
	differences, err := g.apply(writes, &before)
	if err == nil && devices != nil {
		err = g.SetDevices(*devices)
	}
	if err != nil {
		return nil, takenBack(err, before.restore)
	}
	return differences, nil
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
	l.Absent = func(controller string) bool {
		n := g.fileNode(controller)
		if n == nil {
			return true
		}
		_, err := g.open(n)
		return errors.Is(err, fs.ErrNotExist)
	}
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
