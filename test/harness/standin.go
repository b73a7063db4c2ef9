package harness

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
)

const (
	systemdPath      = dbus.ObjectPath("/org/freedesktop/systemd1")
	systemdInterface = "org.freedesktop.systemd1.Manager"
)

// StandIn takes the place of systemd for what no guest can do: CRIU needs more of ptrace than
// User-Mode Linux has, and the machines that CRIU works on need not have systemd. It makes and
// removes the cgroups of scopes, keeps their properties, and does no more.
type StandIn struct {
	conn *dbus.Conn
	home string // the cgroup below which its units are, as those of a systemd in a container
	// hierarchies are those that systemd looks after, or enough of them: its own among them.
	hierarchies []Hierarchy

	mu    sync.Mutex
	units map[string]map[string]dbus.Variant
	jobs  uint32
}

type unitProperty struct {
	Name  string
	Value dbus.Variant
}

// NewStandIn starts one on a bus of its own, and gives what the engine finds it by.
func NewStandIn(t *testing.T, b *Box) (*StandIn, string) {
	t.Helper()
	if _, err := os.Stat("/run/systemd/private"); err == nil {
		Skip(t, "needs a machine without systemd, whose cgroups these are")
	}
	daemon := NeedTool(t, "dbus-daemon", "dbus-daemon")
	config := b.WriteFile("bus.conf", `<busconfig><type>session</type><listen>unix:path=`+b.Path("bus")+`</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>`, 0o600)
	cmd := exec.Command(daemon, "--nofork", "--nopidfile", "--print-address", "--config-file="+config)
	out, err := cmd.StdoutPipe()
	b.must(err)
	b.must(cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("dbus-daemon says nothing: %v", err)
	}
	address := "unix:path=" + b.Path("bus")
	conn, err := dbus.Connect(address)
	b.must(err)
	t.Cleanup(func() { conn.Close() })
	s := &StandIn{conn: conn, home: "/" + b.Tag + "-systemd", units: map[string]map[string]dbus.Variant{}}
	for _, h := range Hierarchies(t) {
		if h.Unified || slices.Contains(h.Controllers, "name=systemd") || slices.Contains(h.Controllers, "pids") {
			s.hierarchies = append(s.hierarchies, h)
		}
	}
	b.must(conn.Export(s, systemdPath, systemdInterface))
	b.must(conn.ExportSubtree(standInProperties{s}, systemdPath, "org.freedesktop.DBus.Properties"))
	_, err = conn.RequestName("org.freedesktop.systemd1", 0)
	b.must(err)
	t.Cleanup(func() {
		for _, dir := range s.dirs("/" + standInSlice) {
			b.must(removeDirs(dir, filepath.Dir(dir)))
		}
	})
	return s, "DBUS_SYSTEM_BUS_ADDRESS=" + address
}

func removeDirs(dirs ...string) error {
	for _, dir := range dirs {
		if err := os.Remove(dir); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// standInSlice is the one slice that the units of the stand-in are in.
const standInSlice = "machine.slice"

// place is where a unit is below the home.
func (s *StandIn) place(unit string) string {
	if slice, _ := s.units[unit]["Slice"].Value().(string); slice != standInSlice {
		panic("the stand-in has no " + slice)
	}
	return "/" + standInSlice + "/" + unit
}

// dirs are the directories of one of its cgroups.
func (s *StandIn) dirs(path string) []string {
	var dirs []string
	for _, h := range s.hierarchies {
		dirs = append(dirs, filepath.Join(h.Dir, s.home, path))
	}
	return dirs
}

// Property is what systemctl would show, of those that the unit was given.
func (s *StandIn) Property(unit, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch v, given := s.units[unit][name]; {
	case given:
		return fmt.Sprint(v.Value())
	case name == "ControlGroup" && s.units[unit] != nil:
		return s.home + s.place(unit)
	case name == "LoadState" && s.units[unit] == nil:
		return "not-found"
	}
	return ""
}

func dbusError(err error) *dbus.Error {
	if err == nil {
		return nil
	}
	return dbus.MakeFailedError(err)
}

// StartTransientUnit, StopUnit and the like are systemd's methods by their names.
func (s *StandIn) StartTransientUnit(name, mode string, properties []unitProperty, _ []struct {
	Name       string
	Properties []unitProperty
}) (dbus.ObjectPath, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.units[name] = map[string]dbus.Variant{}
	for _, p := range properties {
		s.units[name][p.Name] = p.Value
	}
	for _, dir := range s.dirs(s.place(name)) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", dbusError(err)
		}
		for _, pid := range s.units[name]["PIDs"].Value().([]uint32) {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0); err != nil {
				return "", dbusError(err)
			}
		}
	}
	return s.job(name)
}

func (s *StandIn) StopUnit(name, mode string) (dbus.ObjectPath, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.units[name] == nil {
		return "", dbus.NewError("org.freedesktop.systemd1.NoSuchUnit", []any{"Unit " + name + " not loaded."})
	}
	dirs := s.dirs(s.place(name))
	delete(s.units, name)
	if err := removeDirs(dirs...); err != nil {
		return "", dbusError(err)
	}
	return s.job(name)
}

// SetUnitProperties has no effect on the cgroup, as systemd's on version 1 has none that the engine
// does not repeat.
func (s *StandIn) SetUnitProperties(name string, runtime bool, properties []unitProperty) *dbus.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.units[name] == nil {
		return dbus.NewError("org.freedesktop.systemd1.NoSuchUnit", []any{"Unit " + name + " not loaded."})
	}
	for _, p := range properties {
		s.units[name][p.Name] = p.Value
	}
	return nil
}

// job tells the end of a job before the method that began it answers, as systemd may.
func (s *StandIn) job(unit string) (dbus.ObjectPath, *dbus.Error) {
	s.jobs++
	path := dbus.ObjectPath(fmt.Sprint(systemdPath, "/job/", s.jobs))
	return path, dbusError(s.conn.Emit(systemdPath, systemdInterface+".JobRemoved", s.jobs, path, unit, "done"))
}

func (s *StandIn) ResetFailedUnit(name string) *dbus.Error { return nil }

func (s *StandIn) Subscribe() *dbus.Error { return nil }

// standInProperties answers questions for properties, of the manager and of units.
type standInProperties struct{ *StandIn }

func (s standInProperties) Get(message dbus.Message, iface, name string) (dbus.Variant, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, _ := message.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
	for unit, properties := range s.units {
		if object := strings.NewReplacer("-", "_2d", ".", "_2e").Replace(unit); string(path) != string(systemdPath)+"/unit/"+object {
			continue
		}
		switch name {
		case "ControlGroup":
			return dbus.MakeVariant(s.home + s.place(unit)), nil
		case "ActiveState":
			return dbus.MakeVariant("active"), nil
		}
		if v, given := properties[name]; given {
			return v, nil
		}
		return dbus.MakeVariant(""), nil
	}
	values := map[string]string{"Version": "257", "ControlGroup": s.home, "ActiveState": "inactive", "SubState": "dead"}
	return dbus.MakeVariant(values[name]), nil
}
