package container

import (
	"context"
	"fmt"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// setLimits changes the limits of the container's cgroup, through systemd where
// that has made it. What is not in the resources stays.
func (c *Container) setLimits(g *cgroup.Group, r *specs.LinuxResources) (cgroup.Report, error) {
	if c.Cgroup.Unit == "" {
		return g.Set(r)
	}
	b := dialSystemd()
	defer b.Close()
	h, err := lookAtMachine()
	if err == nil {
		err = b.tell(h)
	}
	if err != nil {
		return cgroup.Report{}, err
	}
	if h.Systemd.User && len(r.Devices) > 0 {
		c.runtime.warn("%s", "/devices: left out, an ordinary user cannot limit access to devices")
		without := *r
		without.Devices = nil
		r = &without
	}
	return c.setUnitLimits(b, h, g, r)
}

// setUnitLimits is Group.Set for the cgroup of a unit: what systemd has properties for goes to it,
// since it would undo what is done behind its back, and then all of it to the files, which tell
// what the kernel refuses. Rules of devices go to both.
func (c *Container) setUnitLimits(b *bus, h *machine, g *cgroup.Group, r *specs.LinuxResources) (cgroup.Report, error) {
	layout := plan.UnitLayout(h.Host)
	layout.Files, layout.Absent = g.Layout().Files, g.Layout().Absent
	limits, writes, warnings, err := ledger.Properties(r, layout, ledger.Options{
		Shares: g.Host().Shares, Slice: strings.HasSuffix(c.Cgroup.Unit, ".slice"),
		Present: func(_, file string) (string, bool) {
			text, err := g.ReadFile(file)
			return text, err == nil
		},
	})
	report := cgroup.Report{Warnings: warnings}
	var devices *device.Policy
	if len(r.Devices) > 0 {
		policy, wrong := device.Fold(r.Devices)
		devices, err = &policy, ledger.Join(err, wrong)
	}
	if err != nil {
		return report, err
	}
	undo, err := c.setUnit(b, h, g, limits, devices)
	if err != nil {
		return report, err
	}
	if report.Differences, err = g.Change(writes, devices); err != nil {
		// The files are back as they were: they were written last.
		if left := undo(); left != nil {
			err = fmt.Errorf("%w; what was changed before that could not all be taken back: %w", err, left)
		}
	}
	return report, err
}

// setUnit gives systemd the properties of the unit that are to change. undo takes that back.
func (c *Container) setUnit(b *bus, h *machine, g *cgroup.Group, limits []ledger.Property, devices *device.Policy) (undo func() error, err error) {
	properties := systemd.Resources(limits)
	if devices != nil {
		policy, allow := devices.Systemd(h.Systemd.Devices, h.Systemd.Version)
		properties = append(properties, systemd.Devices(policy, allow)...)
	}
	if len(properties) == 0 {
		return func() error { return nil }, nil
	}
	ctx := context.Background()
	before, err := b.Present(ctx, c.Cgroup.Unit, properties)
	if err != nil {
		return nil, err
	}
	set := func(properties []systemd.Property, devices *device.Policy) error {
		return c.atStandstill(g, h, devices, func() error {
			return b.Set(ctx, c.Cgroup.Unit, properties)
		})
	}
	if err := set(properties, devices); err != nil {
		return nil, err
	}
	return func() error { return set(before, nil) }, nil
}
