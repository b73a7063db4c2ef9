package container

import (
	"fmt"
	"path/filepath"

	"github.com/berth-runtime/berth/internal/proc/mountinfo"
	"github.com/berth-runtime/berth/internal/resctrl"
)

// findResctrl returns where the resctrl file system is.
func findResctrl() (string, error) {
	mounts, err := mountinfo.Of("self", resctrl.Filesystem)
	if err != nil {
		return "", fmt.Errorf("find the resctrl file system: %w", err)
	}
	return resctrl.Find(mounts)
}

// makeRdt finds or makes the container's class of service. What would be made is
// on record before.
func (m *maker) makeRdt() error {
	config := m.plan.Rdt
	if config == nil {
		return nil
	}
	mount, err := findResctrl()
	if err != nil {
		return fmt.Errorf("config.json: /linux/intelRdt: %w", err)
	}
	if config.ClosID == "" {
		m.Rdt = []string{filepath.Join(mount, m.ID)}
		if err := m.save(); err != nil {
			return err
		}
	}
	group, err := resctrl.Create(mount, m.ID, config)
	if err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	m.rdt, m.Rdt = group, group.Made
	return nil
}

// undoRdt removes what makeRdt has made for a container that could not be made.
func (m *maker) undoRdt() error {
	if m.rdt == nil {
		return nil
	}
	return m.rdt.Remove()
}
