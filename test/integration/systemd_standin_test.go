package integration

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

	"github.com/berth-runtime/berth/test/harness"
)

const (
	managerPath      = dbus.ObjectPath("/org/freedesktop/systemd1")
	managerInterface = "org.freedesktop.systemd1.Manager"
)

// standIn takes the place of systemd for what no guest can do: CRIU needs more of ptrace than User-Mode Linux has, and
// the machines that CRIU works on need not have systemd. It makes and removes the cgroups of scopes, and does no more.
type standIn struct {
	conn *dbus.Conn
	home string // the cgroup below which its units are, as those of a systemd in a container
	// hierarchies are those that systemd looks after, or enough of them.
	hierarchies []harness.Hierarchy

	mu    sync.Mutex
	units map[string]map[string]dbus.Variant
	jobs  uint32
}

type unitProperty struct {
	Name  string
	Value dbus.Variant
}

// newStandIn starts one on a bus of its own, and gives what the engine finds it by.
func newStandIn(t *testing.T, b *harness.Box) (*standIn, string) {
	t.Helper()
	if _, err := os.Stat("/run/systemd/private"); err == nil {
		harness.Skip(t, "needs a machine without systemd: root reaches it by its own socket")
	}
	daemon := harness.NeedTool(t, "dbus-daemon", "dbus-daemon")
	config := b.WriteFile("bus.conf", `<busconfig><type>session</type><listen>unix:path=`+b.Path("bus")+`</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>`, 0o600)
	cmd := exec.Command(daemon, "--nofork", "--nopidfile", "--print-address", "--config-file="+config)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("dbus-daemon says nothing: %v", err)
	}
	address := "unix:path=" + b.Path("bus")
	conn, err := dbus.Connect(address)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	s := &standIn{conn: conn, home: "/" + b.Tag + "-systemd", units: map[string]map[string]dbus.Variant{}}
	for _, h := range harness.Hierarchies(t) {
		if h.Unified || slices.Contains(h.Controllers, "pids") {
			s.hierarchies = append(s.hierarchies, h)
		}
	}
	must(t, conn.Export(s, managerPath, managerInterface))
	must(t, conn.ExportSubtree(standInProperties{s}, managerPath, "org.freedesktop.DBus.Properties"))
	_, err = conn.RequestName("org.freedesktop.systemd1", 0)
	must(t, err)
	t.Cleanup(func() {
		for _, dir := range s.dirs("/system.slice") {
			must(t, removeDirs(dir, filepath.Dir(dir)))
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

// dirs are the folders of one of its cgroups.
func (s *standIn) dirs(path string) []string {
	var dirs []string
	for _, h := range s.hierarchies {
		dirs = append(dirs, filepath.Join(h.Dir, s.home, path))
	}
	return dirs
}

// property is what systemctl would show, of those that the unit was given.
func (s *standIn) property(unit, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch v, given := s.units[unit][name]; {
	case given:
		return fmt.Sprint(v.Value())
	case name == "ControlGroup" && s.units[unit] != nil:
		return s.home + "/system.slice/" + unit
	case name == "LoadState" && s.units[unit] == nil:
		return "not-found"
	}
	return ""
}

func failed(err error) *dbus.Error {
	if err == nil {
		return nil
	}
	return dbus.MakeFailedError(err)
}

// StartTransientUnit, StopUnit and the like are systemd's methods by their names.
func (s *standIn) StartTransientUnit(name, mode string, properties []unitProperty, _ []struct {
	Name       string
	Properties []unitProperty
}) (dbus.ObjectPath, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.units[name] = map[string]dbus.Variant{}
	for _, p := range properties {
		s.units[name][p.Name] = p.Value
	}
	for _, dir := range s.dirs("/system.slice/" + name) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", failed(err)
		}
		for _, pid := range s.units[name]["PIDs"].Value().([]uint32) {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0); err != nil {
				return "", failed(err)
			}
		}
	}
	return s.job(name)
}

func (s *standIn) StopUnit(name, mode string) (dbus.ObjectPath, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.units[name] == nil {
		return "", dbus.NewError("org.freedesktop.systemd1.NoSuchUnit", []any{"Unit " + name + " not loaded."})
	}
	delete(s.units, name)
	if err := removeDirs(s.dirs("/system.slice/" + name)...); err != nil {
		return "", failed(err)
	}
	return s.job(name)
}

// job tells the end of a job before the method that began it answers, as systemd may.
func (s *standIn) job(unit string) (dbus.ObjectPath, *dbus.Error) {
	s.jobs++
	path := dbus.ObjectPath(fmt.Sprint(managerPath, "/job/", s.jobs))
	return path, failed(s.conn.Emit(managerPath, managerInterface+".JobRemoved", s.jobs, path, unit, "done"))
}

func (s *standIn) ResetFailedUnit(name string) *dbus.Error { return nil }

func (s *standIn) Subscribe() *dbus.Error { return nil }

// standInProperties answers questions for properties, of the manager and of units.
type standInProperties struct{ *standIn }

func (s standInProperties) Get(message dbus.Message, iface, name string) (dbus.Variant, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, _ := message.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
	for unit, properties := range s.units {
		if object := strings.NewReplacer("-", "_2d", ".", "_2e").Replace(unit); string(path) != string(managerPath)+"/unit/"+object {
			continue
		}
		switch name {
		case "ControlGroup":
			return dbus.MakeVariant(s.home + "/system.slice/" + unit), nil
		case "ActiveState":
			return dbus.MakeVariant("active"), nil
		}
		return properties[name], nil
	}
	values := map[string]string{"Version": "257", "ControlGroup": s.home, "ActiveState": "inactive", "SubState": "dead"}
	return dbus.MakeVariant(values[name]), nil
}
