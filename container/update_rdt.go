package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// changeRdt writes new schemas to the container's resctrl group, and puts them
// into the config.
func (c *Container) changeRdt(linux *specs.Linux, changes *Changes) error {
	if changes.L3CacheSchema == "" && changes.MemBwSchema == "" {
		return nil
	}
	dir, err := c.resctrlGroup(linux.IntelRdt)
	if err != nil {
		return fmt.Errorf("update container %s: %w", c.ID, err)
	}
	rdt := *linux.IntelRdt
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
		if err := writeSchema(dir, change.schema); err != nil {
			return fmt.Errorf("update container %s: %s: %w", c.ID, change.option, err)
		}
		*change.remember = change.schema
	}
	linux.IntelRdt = &rdt
	return nil
}

// resctrlGroup finds the container's folder in the resctrl file system.
func (c *Container) resctrlGroup(rdt *specs.LinuxIntelRdt) (string, error) {
	if rdt == nil {
		return "", errors.New("the container has no resctrl group (its config has no linux.intelRdt)")
	}
	if c.Rdt != "" {
		return c.Rdt, nil
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("find the resctrl file system: %w", err)
	}
	mount, ok := resctrlMount(string(text))
	if !ok {
		return "", errors.New("resctrl is not mounted (a CPU with Intel RDT or AMD QoS can: mount -t resctrl resctrl /sys/fs/resctrl)")
	}
	name := rdt.ClosID
	if name == "" {
		name = c.ID
	}
	return filepath.Join(mount, name), nil
}

// resctrlMount finds the mount point in the text of /proc/self/mountinfo.
func resctrlMount(mountinfo string) (string, bool) {
	for line := range strings.Lines(mountinfo) {
		front, back, _ := strings.Cut(line, " - ")
		fields := strings.Fields(front)
		if len(fields) > 4 && strings.HasPrefix(back, "resctrl ") {
			return fields[4], true
		}
	}
	return "", false
}

// writeSchema writes one line; the kernel takes none without its end. Why it
// refuses one it says in a file of its own.
func writeSchema(dir, schema string) error {
	path := filepath.Join(dir, "schemata")
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.TrimSuffix(schema, "\n") + "\n")
	err = errors.Join(err, f.Close())
	if err == nil {
		return nil
	}
	for _, root := range [...]string{dir, filepath.Dir(dir)} {
		if why, readErr := os.ReadFile(filepath.Join(root, "info", "last_cmd_status")); readErr == nil {
			return fmt.Errorf("write %q to %s: %w (%s)", schema, path, err, strings.TrimSpace(string(why)))
		}
	}
	return fmt.Errorf("write %q to %s: %w", schema, path, err)
}
