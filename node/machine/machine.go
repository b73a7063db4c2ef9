package machine

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/internal/settings"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/inventory"
	"github.com/berth-runtime/berth/node/plan"
)

// Machine is a node.
type Machine struct {
	// Root is the directory that stands for /; "" for the machine itself.
	Root    string
	Cgroups *cgroup.Host
	// Units is nil where systemd is not the init system.
	Units Units
}

// Units is what is asked of systemd.
type Units interface {
	Version(ctx context.Context) (int, error)
	// Properties are some of the unit's type, with its ActiveState.
	Properties(ctx context.Context, unit string, properties ...string) (map[string]any, error)
	UnitOf(ctx context.Context, pid int) (string, error)
	// Set changes properties until the next boot, or for good.
	Set(ctx context.Context, unit string, lasting config.Lasting, properties []ledger.Property) error
	Activate(ctx context.Context, unit string) error
	Stop(ctx context.Context, unit string) error
	Reload(ctx context.Context) error
	Changes(ctx context.Context, units ...string) (<-chan string, error)
}

// Open gives this machine.
func Open() (*Machine, error) { return OpenIn("", nil) }

// OpenIn gives the machine of a directory, with a systemd of its own or none.
func OpenIn(root string, units Units) (*Machine, error) {
	host, err := cgroup.DetectIn(root)
	if err != nil {
		return nil, fmt.Errorf("find the cgroup hierarchies: %w", err)
	}
	m := &Machine{Root: root, Cgroups: host, Units: units}
	if root == "" && units == nil && m.Init() == config.Systemd {
		m.Units = newBus()
	}
	if len(host.Hierarchies()) == 0 {
		return nil, fmt.Errorf("%w: mount one, as mount -t cgroup2 none /sys/fs/cgroup", cgroup.ErrNotMounted)
	}
	return m, nil
}

// Init tells which driver the machine has by itself: systemd's directory is there
// if, and only if, systemd is the init system (sd_booted(3)).
func (m *Machine) Init() config.Driver {
	if st, err := os.Lstat(m.Root + "/run/systemd/system"); err == nil && st.IsDir() {
		return config.Systemd
	}
	return config.Cgroupfs
}

// Prepare makes of a configuration the one for this machine, and its plan.
func (m *Machine) Prepare(ctx context.Context, c *config.Config) (*plan.Plan, error) {
	return m.prepare(ctx, c, nil)
}

// Again is Prepare of the same configuration a little later: it looks at the
// settings only, and takes what changes seldom, and is found by walking over all
// processes, from the plan before.
func (m *Machine) Again(ctx context.Context, before *plan.Plan) (*plan.Plan, error) {
	return m.prepare(ctx, before.Config, before.Facts)
}

func (m *Machine) prepare(ctx context.Context, c *config.Config, before *plan.Facts) (*plan.Plan, error) {
	driver, err := plan.DriverFor(c, m.Init())
	if err != nil {
		return nil, err
	}
	if c, err = c.For(driver); err != nil {
		return nil, err
	}
	places, err := plan.Places(c)
	if err != nil {
		return nil, err
	}
	var f plan.Facts
	if before != nil {
		f = *before
	} else if err := m.seldom(ctx, c, &f); err != nil {
		return nil, err
	}
	if err := m.settings(ctx, places, &f); err != nil {
		return nil, err
	}
	for i := range f.Daemons {
		if text, ok := m.Score(f.Daemons[i].PID); ok {
			f.Daemons[i].Score, _ = strconv.Atoi(text)
		}
	}
	return plan.Make(c, &f)
}

// seldom looks at what changes seldom.
func (m *Machine) seldom(ctx context.Context, c *config.Config, f *plan.Facts) error {
	capacity, err := m.Capacity()
	if err != nil {
		return err
	}
	*f = plan.Facts{Capacity: capacity, PageSize: int64(os.Getpagesize()), Init: m.Init(), Mode: m.Cgroups.Mode().String(), Layout: m.Cgroups.Layout()}
	if m.Units != nil {
		if f.SystemdVersion, err = m.Units.Version(ctx); err != nil {
			return err
		}
	}
	if f.Containers, err = inventory.Find(m.Root, m.Cgroups); err != nil {
		return err
	}
	return m.processes(ctx, c, f)
}

// SettingsFile is where the host's settings for berth and its shim are.
func (m *Machine) SettingsFile() string { return m.Root + settings.File }

func (m *Machine) hostSettings() (settings.Settings, error) {
	text, err := settings.ReadFile(m.SettingsFile())
	if err != nil {
		return settings.Settings{}, err
	}
	return settings.Parse(settings.File, text)
}

// sliceProperties are those that a plan may set.
var sliceProperties = []string{"CPUWeight", "MemoryMax", "MemoryMin", "MemoryHigh", "TasksMax"}

// settings looks at what a plan sets.
func (m *Machine) settings(ctx context.Context, places []plan.Place, f *plan.Facts) error {
	var err error
	if f.Settings, err = m.hostSettings(); err != nil {
		return err
	}
	f.Groups, f.Parameters = map[string]plan.Group{}, map[string]string{}
	for _, p := range places {
		g, ok := m.group(p.Path)
		if m.Units != nil && p.Slice != "" {
			if g.Properties, err = m.Units.Properties(ctx, p.Slice, sliceProperties...); err != nil {
				return err
			}
			g.Active = g.Properties["ActiveState"] == "active"
		}
		if ok || g.Active {
			f.Groups[p.Path] = g
		}
	}
	for _, parameter := range plan.Parameters() {
		if value, ok := m.Parameter(parameter[0]); ok {
			f.Parameters[parameter[0]] = value
		}
	}
	return nil
}

// limitFiles are the files that a plan may set, on either version.
var limitFiles = []string{"cpu.weight", "cpu.shares", "memory.max", "memory.limit_in_bytes", "memory.min", "memory.high", "pids.max"}

// group looks at one cgroup; false if it is in no hierarchy.
func (m *Machine) group(path string) (plan.Group, bool) {
	g, err := m.Cgroups.Open(path)
	if err != nil {
		return plan.Group{}, false
	}
	defer g.Close()
	found := plan.Group{Files: map[string]string{}}
	for _, controller := range []string{"cpu", "memory", "pids", "hugetlb"} {
		home := m.Cgroups.Controller(controller)
		if home == nil {
			found.Missing = append(found.Missing, controller)
			continue
		}
		there := g.Directory(controller) != ""
		if home.Version == 2 {
			text, err := g.ReadFile("cgroup.controllers")
			there = err == nil && slices.Contains(strings.Fields(text), controller)
		}
		if !there {
			found.Missing = append(found.Missing, controller)
			continue
		}
		files, err := g.Files(controller)
		if err != nil {
			continue
		}
		for _, file := range files {
			limit := slices.Contains(limitFiles, file) ||
				strings.HasPrefix(file, "hugetlb.") && (strings.HasSuffix(file, ".max") || strings.HasSuffix(file, ".limit_in_bytes"))
			if !limit || found.Files[file] != "" {
				continue
			}
			if value, err := g.ReadFile(file); err == nil {
				found.Files[file] = value
			}
		}
	}
	for _, file := range []string{"memory.current", "memory.usage_in_bytes"} {
		if text, err := g.ReadFile(file); err == nil {
			found.Memory, _ = strconv.ParseInt(text, 10, 64)
			break
		}
	}
	return found, true
}

// File is the path of a cgroup's file; "" if the cgroup is not there.
func (m *Machine) File(group, controller, file string) string {
	g, err := m.Cgroups.Open(group)
	if err != nil {
		return ""
	}
	defer g.Close()
	dir := g.Directory(controller)
	if dir == "" {
		return ""
	}
	return dir + "/" + file
}

// Parameter reads a parameter of the kernel; false if it has it not.
func (m *Machine) Parameter(name string) (string, bool) {
	text, err := os.ReadFile(m.ParameterFile(name))
	return strings.TrimSpace(string(text)), err == nil
}

// ParameterFile is where a parameter of the kernel is: vm.x is vm/x.
func (m *Machine) ParameterFile(name string) string {
	return m.Root + "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
}

// BootID tells one boot from the next; "" where the kernel does not.
func (m *Machine) BootID() string {
	text, _ := os.ReadFile(m.Root + "/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}
