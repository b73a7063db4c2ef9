package container

import (
	"errors"
	"fmt"

	"github.com/berth-runtime/berth/internal/resctrl"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// changeRdt writes new schemas to the container's resctrl group, and puts them
// into the config. What it gives takes that back.
func (c *Container) changeRdt(linux *specs.Linux, changes *Changes) (undo func() error, err error) {
	if changes.L3CacheSchema == "" && changes.MemBwSchema == "" {
		return func() error { return nil }, nil
	}
	dir, err := c.ResctrlGroup(linux.IntelRdt)
	if err == nil {
		undo, err = writeRdt(dir, linux, changes)
	}
	if err != nil {
		return nil, fmt.Errorf("update container %s: %w", c.ID, err)
	}
	return undo, nil
}

// writeRdt writes to the group in dir, all or nothing.
func writeRdt(dir string, linux *specs.Linux, changes *Changes) (undo func() error, err error) {
	rdt := *linux.IntelRdt
	restore, err := resctrl.Restorer(dir)
	if err != nil {
		return nil, err
	}
	for _, change := range [...]struct {
		option, schema string
		remember       *string
	}{
		{"--l3-cache-schema", changes.L3CacheSchema, &rdt.L3CacheSchema},
		{"--mem-bw-schema", changes.MemBwSchema, &rdt.MemBwSchema},
	} {
		if change.schema == "" {
			continue
		}
		if err := resctrl.Write(dir, change.schema); err != nil {
			return nil, takenBack(fmt.Errorf("%s: %w", change.option, err), restore)
		}
		*change.remember = change.schema
	}
	linux.IntelRdt = &rdt
	return restore, nil
}

// takenBack undoes an earlier step of an update that failed with err.
func takenBack(err error, undo func() error) error {
	if failed := undo(); failed != nil {
		return fmt.Errorf("%w; earlier changes could not be undone: %w", err, failed)
	}
	return err
}

// ResctrlGroup finds the container's directory in the resctrl file system.
func (c *Container) ResctrlGroup(rdt *specs.LinuxIntelRdt) (string, error) {
	if rdt == nil {
		return "", errors.New("the container has no resctrl group (its config has no linux.intelRdt)")
	}
	mount, err := findResctrl()
	if err != nil {
		return "", err
	}
	return resctrl.Dir(mount, c.ID, rdt), nil
}
