package fake

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
	"github.com/berth-runtime/berth/node/config"
)

// Systemd manages the slices of a machine, with drop-ins for what it is told to
// set, and the cgroup files that follow.
type Systemd struct {
	m *Machine
	// mu guards what follows: a daemon and its test use it at once.
	mu    sync.Mutex
	units map[string]*slice
	// Deaf properties are taken, and never reach the kernel's file.
	Deaf string
	// Calls are all that were made to change something.
	Calls []string
	// Signals are what Changes tells: names of units, sent by the test.
	Signals chan string
}

type slice struct {
	active     bool
	properties map[string]uint64
	mainPID    uint32
}

// Version is that of the guests.
func (s *Systemd) Version(context.Context) (int, error) { return 257, nil }

func (s *Systemd) unit(name string) *slice {
	if s.units[name] == nil {
		s.units[name] = &slice{}
	}
	return s.units[name]
}

// Properties gives the value of a property, infinity where none was set.
func (s *Systemd) Properties(_ context.Context, name string, properties ...string) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.unit(name)
	all := map[string]any{"ActiveState": "inactive", "MainPID": u.mainPID}
	if u.active {
		all["ActiveState"] = "active"
	}
	for _, p := range properties {
		if p == "MainPID" {
			continue
		}
		all[p] = s.value(name, p)
	}
	return all, nil
}

func (s *Systemd) value(name, property string) uint64 {
	if v, ok := s.unit(name).properties[property]; ok {
		return v
	}
	if property == "MemoryMin" {
		return 0
	}
	return math.MaxUint64
}

// Service makes a service with a process.
func (s *Systemd) Service(name string, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.unit(name)
	u.active, u.mainPID = true, uint32(pid)
}

// UnitOf goes by the main processes, and by the cgroup's name.
func (s *Systemd) UnitOf(_ context.Context, pid int) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, u := range s.units {
		if u.mainPID == uint32(pid) {
			return name, nil
		}
	}
	text := s.m.Read(fmt.Sprintf("/proc/%d/cgroup", pid))
	return filepath.Base(text), nil
}

// dropIn is the file that systemd makes for a property.
func (s *Systemd) dropIn(name, property string, lasting config.Lasting) string {
	dir := "/run"
	if lasting == config.Persistent {
		dir = "/etc"
	}
	return dir + "/systemd/system.control/" + name + ".d/50-" + property + ".conf"
}

// Set changes properties, as systemctl set-property does.
func (s *Systemd) Set(_ context.Context, name string, lasting config.Lasting, properties []ledger.Property) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.unit(name)
	for _, p := range properties {
		s.Calls = append(s.Calls, "set "+name+" "+p.Name)
		v, ok := p.Value.(uint64)
		if !ok {
			return fmt.Errorf("%s has a value of type %T", p.Name, p.Value)
		}
		if u.properties == nil {
			u.properties = map[string]uint64{}
		}
		u.properties[p.Name] = v
		s.m.Write(s.dropIn(name, p.Name, lasting), fmt.Sprintf("[Slice]\n%s=%d\n", p.Name, v))
		s.realize(name, p.Name)
	}
	return nil
}

// realize writes the kernel's file of a property.
func (s *Systemd) realize(name, property string) {
	at, err := unit.SlicePath(name)
	if err != nil || property == s.Deaf {
		return
	}
	if !s.unit(name).active {
		s.m.Group(at) // as systemd 257 does; nothing removes it then
		return
	}
	dirs, v := s.m.groupDirs(at), s.value(name, property)
	text := strconv.FormatUint(v, 10)
	if v == math.MaxUint64 {
		text = "max"
	}
	switch property {
	case "CPUWeight":
		if v == math.MaxUint64 {
			v = 100
		}
		if s.m.V2 {
			s.m.Write(dirs["cpu"]+"/cpu.weight", strconv.FormatUint(v, 10)+"\n")
		} else {
			s.m.Write(dirs["cpu"]+"/cpu.shares", strconv.FormatUint(v*1024/100, 10)+"\n")
		}
	case "MemoryMax":
		if s.m.V2 {
			s.m.Write(dirs["memory"]+"/memory.max", text+"\n")
			return
		}
		if v == math.MaxUint64 {
			text = "9223372036854771712"
		}
		if used, err := strconv.ParseUint(s.m.Read(dirs["memory"]+"/memory.usage_in_bytes"), 10, 64); err == nil && used > v {
			return // EBUSY: the kernel of version 1 refuses it
		}
		s.m.Write(dirs["memory"]+"/memory.limit_in_bytes", text+"\n")
	case "MemoryMin", "MemoryHigh":
		if s.m.V2 && property == "MemoryHigh" {
			// What is above it is reclaimed at once.
			if used, err := strconv.ParseUint(s.m.Read(dirs["memory"]+"/memory.current"), 10, 64); err == nil && used > v {
				s.m.Write(dirs["memory"]+"/memory.current", text+"\n")
			}
		}
		if s.m.V2 {
			s.m.Write(dirs["memory"]+"/memory."+strings.ToLower(strings.TrimPrefix(property, "Memory")), text+"\n")
		}
	case "TasksMax":
		s.m.Write(dirs["pids"]+"/pids.max", text+"\n")
	}
}

func (s *Systemd) start(name string) {
	at, err := unit.SlicePath(name)
	if err != nil {
		s.m.T.Fatal(err)
	}
	s.unit(name).active = true
	s.m.Group(at)
	for property := range s.unit(name).properties {
		s.realize(name, property)
	}
}

// Activate starts a slice.
func (s *Systemd) Activate(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Calls = append(s.Calls, "start "+name)
	if !s.unit(name).active {
		s.start(name)
	}
	return nil
}

// Stop stops a slice.
func (s *Systemd) Stop(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Calls = append(s.Calls, "stop "+name)
	at, err := unit.SlicePath(name)
	if err != nil {
		return err
	}
	s.unit(name).active = false
	s.m.Ungroup(at)
	return nil
}

// Reload reads the drop-ins again: what has none has its default.
func (s *Systemd) Reload(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Calls = append(s.Calls, "reload")
	for name, u := range s.units {
		for property := range u.properties {
			kept := false
			for _, lasting := range []config.Lasting{config.Runtime, config.Persistent} {
				text, err := os.ReadFile(s.m.Dir + s.dropIn(name, property, lasting))
				if err != nil {
					continue
				}
				_, value, _ := strings.Cut(strings.TrimSpace(string(text)), property+"=")
				v, err := strconv.ParseUint(value, 10, 64)
				if err != nil {
					return err
				}
				u.properties[property], kept = v, true
			}
			if !kept {
				delete(u.properties, property)
			}
			if u.active {
				s.realize(name, property)
			}
		}
	}
	return nil
}

// Changes tells what the test sends; before this was called it is lost.
func (s *Systemd) Changes(context.Context, ...string) (<-chan string, error) {
	return s.Signals, nil
}

func (s *Systemd) snapshot() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.units)) {
		u := s.units[name]
		if !u.active && len(u.properties) == 0 {
			continue // one that was asked about is as one that was not
		}
		fmt.Fprintf(&b, "%s: %v %v\n", name, u.active, u.properties)
	}
	return b.String()
}
