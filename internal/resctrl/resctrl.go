package resctrl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-runtime/berth/internal/proc/mountinfo"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Dir is where the control group of a container is.
func Dir(mount, id string, config *specs.LinuxIntelRdt) string {
	if config.ClosID == "" {
		return filepath.Join(mount, id)
	}
	return filepath.Join(mount, config.ClosID) // "/" is the mount itself
}

// ErrNotMounted is returned where the config asks for RDT and the host has none.
var ErrNotMounted = errors.New("no resctrl file system is mounted (mount -t resctrl resctrl /sys/fs/resctrl, on a machine that has it)")

// Find returns where resctrl is mounted, by a table of mounts.
func Find(mounts []mountinfo.Entry) (string, error) {
	for _, m := range mounts {
		if m.Type == Filesystem {
			return m.Point, nil
		}
	}
	return "", ErrNotMounted
}

// Filesystem is the type that resctrl has in a table of mounts.
const Filesystem = "resctrl"

// A Group is the container's place in resctrl.
type Group struct {
	// Dir is the control group that the container's processes are written to.
	Dir string
	// Made are the directories to remove when the container is gone, the first first.
	Made []string
}

// A FieldError names the entry of intelRdt that can't be honoured.
type FieldError struct {
	Pointer string // from the intelRdt object on
	Err     error
}

func (e *FieldError) Error() string { return "/linux/intelRdt" + e.Pointer + ": " + e.Err.Error() }

func (e *FieldError) Unwrap() error { return e.Err }

// Create finds or makes the group that a config asks for. What it made is
// removed again if it fails.
func Create(mount, id string, config *specs.LinuxIntelRdt) (*Group, error) {
	g := &Group{Dir: Dir(mount, id, config)}
	schemata := schemataOf(config)
	if err := g.claim(config, len(schemata) > 0); err != nil {
		return nil, err
	}
	err := g.setUp(id, config, schemata)
	if err != nil {
		return nil, errors.Join(err, g.Remove())
	}
	return g, nil
}

// claim decides which directory is the container's, and makes it where it is to be
// made.
func (g *Group) claim(config *specs.LinuxIntelRdt, hasSchemata bool) error {
	if config.ClosID == "" {
		// A directory of the container's own: made by us, removed by us.
		if err := os.Mkdir(g.Dir, 0o755); err != nil {
			return &FieldError{"", full(err)}
		}
		g.Made = []string{g.Dir}
		return nil
	}
	info, err := os.Stat(g.Dir)
	switch {
	case err == nil && !info.IsDir():
		return &FieldError{"/closID", fmt.Errorf("%s is not a class of service", g.Dir)}
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return &FieldError{"/closID", err}
	case !hasSchemata:
		return &FieldError{"/closID", fmt.Errorf("there is no class of service %q, and no schemata are given to create one with", config.ClosID)}
	}
	// A class that others may use too: it stays when the container goes.
	if err := os.Mkdir(g.Dir, 0o755); err != nil {
		return &FieldError{"/closID", full(err)}
	}
	return g.writeSchemata(schemataOf(config))
}

func (g *Group) setUp(id string, config *specs.LinuxIntelRdt, schemata []schema) error {
	own := config.ClosID == ""
	if len(schemata) > 0 && own {
		if err := g.writeSchemata(schemata); err != nil {
			return err
		}
	} else if len(schemata) > 0 {
		if err := g.compare(schemata); err != nil {
			return err
		}
	}
	if config.EnableMonitoring {
		dir := filepath.Join(g.Dir, "mon_groups", id)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return &FieldError{"/enableMonitoring", full(err)}
		}
		g.Made = append([]string{dir}, g.Made...)
	}
	return nil
}

// A schema is one line for the schemata file.
type schema struct{ pointer, line string }

// schemataOf lists the lines in the order in which they must be written.
func schemataOf(config *specs.LinuxIntelRdt) []schema {
	var list []schema
	if s := config.L3CacheSchema; s != "" {
		for line := range strings.SplitSeq(s, "\n") {
			// Memory bandwidth in the wrong entry gives way to the right one.
			if config.MemBwSchema != "" && strings.HasPrefix(line, "MB:") {
				continue
			}
			if line != "" {
				list = append(list, schema{"/l3CacheSchema", line})
			}
		}
	}
	if s := config.MemBwSchema; s != "" {
		list = append(list, schema{"/memBwSchema", s})
	}
	for i, s := range config.Schemata {
		list = append(list, schema{"/schemata/" + strconv.Itoa(i), s})
	}
	return list
}

func (g *Group) writeSchemata(schemata []schema) error {
	for _, s := range schemata {
		if err := Write(g.Dir, s.line); err != nil {
			return &FieldError{s.pointer, err}
		}
	}
	return nil
}

// Write writes one line to a group's schemata. The kernel takes several at once,
// but then does not say which of them it refuses.
func Write(dir, line string) error {
	f, err := os.OpenFile(filepath.Join(dir, "schemata"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.TrimSuffix(line, "\n") + "\n") // it takes none without its end
	err = errors.Join(err, f.Close())
	if err != nil {
		return fmt.Errorf("write %q to %s: %w (the kernel says: %s)", line, f.Name(), err, lastStatus(dir))
	}
	return nil
}

// Restorer reads a group's schemata, and gives what brings the group back to them:
// the lines that are different by then.
func Restorer(dir string) (func() error, error) {
	file := filepath.Join(dir, "schemata")
	before, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return func() error {
		now, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var failed error
		for line := range strings.Lines(string(before)) {
			if !strings.Contains("\n"+string(now), "\n"+line) {
				failed = errors.Join(failed, Write(dir, strings.TrimSpace(line)))
			}
		}
		return failed
	}, nil
}

// lastStatus is what the kernel tells of the last refusal.
func lastStatus(dir string) string {
	for d := dir; len(d) > 1; d = filepath.Dir(d) {
		if text, err := os.ReadFile(filepath.Join(d, "info", "last_cmd_status")); err == nil {
			return strings.TrimSpace(string(text))
		}
	}
	return "it can't be read"
}

// compare refuses an existing class that has other values than the config.
func (g *Group) compare(schemata []schema) error {
	text, err := os.ReadFile(filepath.Join(g.Dir, "schemata"))
	if err != nil {
		return &FieldError{"/closID", err}
	}
	have := map[string]map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, values := parse(line)
		have[name] = values
	}
	for _, s := range schemata {
		name, want := parse(s.line)
		for domain, value := range want {
			if got, ok := have[name][domain]; !ok || !sameValue(got, value) {
				return &FieldError{s.pointer, fmt.Errorf("the class of service %s has %s:%s=%s, the config says %s; a class in use is not changed", g.Dir, name, domain, got, value)}
			}
		}
	}
	return nil
}

// parse reads "L3:0=7f0;1=1f".
func parse(line string) (name string, values map[string]string) {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
	values = map[string]string{}
	for part := range strings.SplitSeq(rest, ";") {
		if domain, value, ok := strings.Cut(part, "="); ok {
			values[strings.TrimSpace(domain)] = strings.TrimSpace(value)
		}
	}
	return strings.TrimSpace(name), values
}

// sameValue compares masks without leading zeros.
func sameValue(a, b string) bool {
	trim := func(s string) string { return strings.TrimLeft(strings.ToLower(s), "0") }
	return trim(a) == trim(b)
}

// Join writes a process into the group, and into its monitoring group.
func (g *Group) Join(pid int) error {
	dirs := []string{g.Dir}
	for _, made := range g.Made {
		if made != g.Dir {
			dirs = append(dirs, made)
		}
	}
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "tasks"), strconv.AppendInt(nil, int64(pid), 10), 0); err != nil {
			return &FieldError{"", fmt.Errorf("move process %d: %w", pid, err)}
		}
	}
	return nil
}

// Remove removes what was made for the container alone.
func (g *Group) Remove() error { return Remove(g.Made) }

// Remove removes directories that a Group made, by a record of them.
func Remove(made []string) error {
	var failed error
	for _, dir := range made {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("remove the class of service: %w", err))
		}
	}
	return failed
}

// full explains ENOSPC, which here is a number of classes and no disk.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w (the hardware has no class or monitor left)", err)
	}
	return err
}
