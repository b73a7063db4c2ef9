package fake

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/machine"
)

// Machine is a directory that stands for a machine: 4 processors, 8 GiB.
type Machine struct {
	*machine.Machine
	T       testing.TB
	Dir     string
	V2      bool
	Systemd *Systemd // nil without
}

const (
	unified = "36 25 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
	memory  = "MemTotal:        8388608 kB\nMemFree:         1000000 kB\n"
)

var controllers = []string{"cpu", "memory", "pids", "hugetlb"}

// New makes a machine. mode is unified or legacy.
func New(t testing.TB, mode string, systemd bool) *Machine {
	t.Helper()
	m := &Machine{T: t, Dir: folder(t), V2: mode == "unified"}
	mounts := unified
	if !m.V2 {
		mounts = ""
		for i, c := range controllers {
			mounts += fmt.Sprintf("%d 25 0:%d / /sys/fs/cgroup/%s rw - cgroup cgroup rw,%s\n", 40+i, 40+i, c, c)
			m.Mkdir("/sys/fs/cgroup/" + c)
		}
	}
	m.Write("/proc/self/mountinfo", mounts)
	m.Write("/proc/meminfo", memory)
	m.Write("/proc/sys/kernel/random/boot_id", "boot-1\n")
	m.Write("/sys/devices/system/cpu/online", "0-3\n")
	for name, value := range map[string]string{"vm/overcommit_memory": "0", "vm/panic_on_oom": "0", "kernel/panic": "0", "kernel/panic_on_oops": "1",
		"kernel/pid_max": "32768", "kernel/threads-max": "65536"} {
		m.Write("/proc/sys/"+name, value+"\n")
	}
	m.Mkdir("/var/lib")
	if m.V2 {
		m.Write("/sys/fs/cgroup/cgroup.controllers", strings.Join(controllers, " ")+"\n")
		m.Write("/sys/fs/cgroup/cgroup.subtree_control", strings.Join(controllers, " ")+"\n")
		m.Write("/sys/fs/cgroup/cgroup.procs", "")
	}
	if systemd {
		m.Mkdir("/run/systemd/system")
		m.Mkdir("/etc/systemd")
		m.Systemd = &Systemd{m: m, units: map[string]*slice{}, Signals: make(chan string)}
		for _, name := range []string{"system.slice", "user.slice"} {
			m.Systemd.start(name)
		}
	}
	return m.Open()
}

// folder is one in memory, where there is such a place: the record is synced to disk
// at each step, which would be most of the time of a test.
func folder(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "berth-node-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Open looks at the directory again, as a program does that starts.
func (m *Machine) Open() *Machine {
	m.T.Helper()
	var units machine.Units
	if m.Systemd != nil {
		units = m.Systemd
	}
	found, err := machine.OpenIn(m.Dir, units)
	if err != nil {
		m.T.Fatal(err)
	}
	m.Machine = found
	return m
}

// Config reads a configuration whose record is beside the machine.
func (m *Machine) Config(text string) *config.Config {
	m.T.Helper()
	c, err := config.Parse("node.yaml", text, []config.Override{{Key: "state-dir", Value: m.Dir + "/state"}})
	if err != nil {
		m.T.Fatal(err)
	}
	return c
}

// Mkdir makes a directory of the machine.
func (m *Machine) Mkdir(path string) {
	m.T.Helper()
	if err := os.MkdirAll(m.Dir+path, 0o755); err != nil {
		m.T.Fatal(err)
	}
}

// Write gives a file of the machine a content.
func (m *Machine) Write(path, text string) {
	m.T.Helper()
	m.Mkdir(filepath.Dir(path))
	if err := os.WriteFile(m.Dir+path, []byte(text), 0o644); err != nil {
		m.T.Fatal(err)
	}
}

// Read gives the content of a file, without the line break at its end.
func (m *Machine) Read(path string) string {
	m.T.Helper()
	text, err := os.ReadFile(m.Dir + path)
	if err != nil {
		m.T.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// Remove takes a file, or a directory with all that is in it, away.
func (m *Machine) Remove(path string) {
	m.T.Helper()
	if err := os.RemoveAll(m.Dir + path); err != nil {
		m.T.Fatal(err)
	}
}

// groupDirs are the directories of a cgroup, by controller.
func (m *Machine) groupDirs(path string) map[string]string {
	dirs := map[string]string{}
	for _, c := range controllers {
		dirs[c] = "/sys/fs/cgroup/" + c + path
		if m.V2 {
			dirs[c] = "/sys/fs/cgroup" + path
		}
	}
	return dirs
}

// Group makes a cgroup as the kernel does.
func (m *Machine) Group(path string) {
	m.T.Helper()
	dirs := m.groupDirs(path)
	for _, dir := range dirs {
		m.Write(dir+"/cgroup.procs", "")
	}
	if m.V2 {
		for name, value := range map[string]string{"cgroup.controllers": strings.Join(controllers, " "), "cgroup.subtree_control": "", "cgroup.events": "populated 0\nfrozen 0",
			"cpu.weight": "100", "memory.max": "max", "memory.high": "max", "memory.min": "0", "memory.current": "0", "pids.max": "max", "pids.current": "0"} {
			m.Write(dirs["cpu"]+"/"+name, value+"\n")
		}
		return
	}
	m.Write(dirs["cpu"]+"/cpu.shares", "1024\n")
	m.Write(dirs["memory"]+"/memory.limit_in_bytes", "9223372036854771712\n")
	m.Write(dirs["memory"]+"/memory.usage_in_bytes", "0\n")
	m.Write(dirs["pids"]+"/pids.max", "max\n")
}

// Ungroup removes a cgroup.
func (m *Machine) Ungroup(path string) {
	m.T.Helper()
	for _, dir := range m.groupDirs(path) {
		m.Remove(dir)
	}
}

// Process makes a process. The executable is made, too, and is root's where the
// test runs as root.
func (m *Machine) Process(pid int, comm, executable, cgroup, namespace string) {
	m.T.Helper()
	dir := fmt.Sprintf("/proc/%d", pid)
	m.Write(dir+"/comm", comm+"\n")
	m.Write(dir+"/stat", fmt.Sprintf("%d (%s) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n", pid, comm, 100*pid))
	m.Write(dir+"/oom_score_adj", "0\n")
	m.Write(dir+"/cgroup", "0::"+cgroup+"\n")
	m.Write(executable, "#!\n")
	m.Link(dir+"/exe", m.Dir+executable)
	m.Link(dir+"/ns/pid", namespace)
	m.Link(dir+"/root", m.Dir)
	m.Link("/proc/self/ns/pid", "pid:[1]")
	m.Link("/proc/1/root", m.Dir)
}

// Run makes a cgroup with a process in it.
func (m *Machine) Run(pid int, group, namespace string) {
	m.T.Helper()
	m.Group(group)
	m.Process(pid, "sh", "/bin/sh", group, namespace)
	for _, dir := range m.groupDirs(group) {
		m.Write(dir+"/cgroup.procs", fmt.Sprintf("%d\n", pid))
		if m.V2 {
			m.Write(dir+"/cgroup.events", "populated 1\nfrozen 0\n")
		}
	}
}

// Root gives a process another root directory than the machine's, as that of a container.
func (m *Machine) Root(pid int, dir string) {
	m.T.Helper()
	m.Mkdir(dir)
	m.Link(fmt.Sprintf("/proc/%d/root", pid), m.Dir+dir)
}

// Link makes a symbolic link, in place of one that is there.
func (m *Machine) Link(link, to string) {
	m.T.Helper()
	m.Mkdir(filepath.Dir(link))
	_ = os.Remove(m.Dir + link)
	if err := os.Symlink(to, m.Dir+link); err != nil {
		m.T.Fatal(err)
	}
}

// Snapshot is all files of the machine with their content, to be compared. What
// berth-node keeps for itself is not in it.
func (m *Machine) Snapshot() string {
	m.T.Helper()
	var b strings.Builder
	err := filepath.WalkDir(m.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, m.Dir)
		switch {
		case name == "/state":
			return fs.SkipDir
		case e.IsDir():
			b.WriteString(name + "/\n")
		case e.Type().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s: %q\n", name, strings.TrimSpace(string(text)))
		}
		return nil
	})
	if err != nil {
		m.T.Fatal(err)
	}
	if m.Systemd != nil {
		b.WriteString(m.Systemd.snapshot())
	}
	return b.String()
}
