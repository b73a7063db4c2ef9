package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain lets this program be a process that uses memory or a processor.
func TestMain(m *testing.M) {
	what, argument, _ := strings.Cut(os.Getenv("BERTH_NODE_TEST_USE"), "=")
	switch what {
	case "memory":
		n, _ := strconv.Atoi(argument)
		block := make([]byte, n)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
	case "cache":
		if err := os.WriteFile(argument, make([]byte, 200_000_000), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		exec.Command("sync").Run() // what is dirty can't be reclaimed at once
	case "processor":
		for x := 1; x != 0; x = 1103515245*x | 1 { // never
		}
	case "":
		os.Exit(m.Run())
	}
	// Only now is it started, to the service manager (Type=notify would need a socket).
	if file := os.Getenv("BERTH_NODE_TEST_READY"); file != "" {
		os.WriteFile(file, nil, 0o600)
	}
	time.Sleep(time.Hour)
}

// program is the berth-node of the guest, or one that is built from here.
func program(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("berth-node"); err == nil {
		return path
	}
	path := filepath.Join(t.TempDir(), "berth-node")
	build := exec.Command("go", "build", "-trimpath", "-o", path, "github.com/berth-runtime/berth/cmd/berth-node")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// machine is the guest that a test has for itself.
type machine struct {
	*testing.T
	program string
	conf    string
}

// mine refuses machines that others may care for.
func mine(t *testing.T) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("sharing out a node takes root")
	}
	if st, err := os.Lstat("/run/systemd/system"); err != nil || !st.IsDir() {
		t.Skip("systemd is not the init system here")
	}
	cpu, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || !strings.Contains(string(cpu), "User Mode Linux") {
		t.Skip("this changes the whole machine, and is for guests only: test/guests/test -- ./test/node")
	}
	m := &machine{T: t, program: program(t), conf: filepath.Join(t.TempDir(), "node.yaml")}
	t.Cleanup(func() {
		// Whatever a failed test left.
		exec.Command("systemctl", "stop", "berth-node").Run()
		exec.Command(m.program, "undo").Run()
	})
	return m
}

func (m *machine) configure(text string) {
	m.Helper()
	if err := os.WriteFile(m.conf, []byte(text), 0o600); err != nil {
		m.Fatal(err)
	}
}

// try runs a command and gives what it said.
func (m *machine) try(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (m *machine) run(name string, args ...string) string {
	m.Helper()
	out, err := m.try(name, args...)
	if err != nil {
		m.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// node runs berth-node with the test's configuration.
func (m *machine) node(command string, more ...string) string {
	m.Helper()
	return m.run(m.program, append([]string{command, "--config", m.conf}, more...)...)
}

// file is where a controller has a file of a slice, on either version.
func file(slice string, names ...string) string {
	for _, name := range names {
		controller, _, _ := strings.Cut(name, ".")
		for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/" + controller} {
			if path := filepath.Join(dir, slice, name); exists(path) {
				return path
			}
		}
	}
	return filepath.Join("/sys/fs/cgroup", slice, names[0])
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func (m *machine) read(path string) string {
	m.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		m.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func (m *machine) write(path, text string) {
	m.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.Fatal(err)
	}
}

// limitOf is the file of a slice's limit of memory.
func limitOf(slice string) string { return file(slice, "memory.max", "memory.limit_in_bytes") }

// await waits until something is so; the deadline is for a machine that is very busy.
func (m *machine) await(what string, is func() bool) time.Duration {
	m.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) > 90*time.Second {
			journal, _ := m.try("journalctl", "-b", "--no-pager", "-n", "60")
			m.Fatalf("%s: not so\n%s", what, journal)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(began)
}

// snapshot is all that berth-node may change.
func (m *machine) snapshot() string {
	m.Helper()
	var b strings.Builder
	for _, slice := range []string{"system.slice", "kubernetes.slice", "machine.slice"} {
		for _, name := range []string{"cpu.weight", "cpu.shares", "memory.max", "memory.high", "memory.min", "memory.limit_in_bytes", "pids.max"} {
			if path := file(slice, name); exists(path) {
				fmt.Fprintf(&b, "%s: %s\n", path, m.read(path))
			}
		}
		b.WriteString(slice + " " + strings.ReplaceAll(m.run("systemctl", "show", slice, "-p", "ActiveState,CPUWeight,MemoryMax,MemoryHigh,MemoryMin,TasksMax"), "\n", " ") + "\n")
	}
	for _, dir := range []string{"/run/systemd/system.control", "/etc/systemd/system.control"} {
		filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			if err == nil {
				b.WriteString(path + "\n")
			}
			return nil
		})
	}
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"} {
		b.WriteString(name + " " + m.read("/proc/sys/"+name) + "\n")
	}
	return b.String()
}

// use starts a unit in a slice that uses something, and waits until it does or has
// ended. It gives the name of the unit.
func (m *machine) use(slice, what string, more ...string) string {
	m.Helper()
	self, err := os.Executable()
	if err != nil {
		m.Fatal(err)
	}
	unit := fmt.Sprintf("berth-node-test-%d.service", time.Now().UnixNano())
	ready := filepath.Join(m.TempDir(), "ready")
	args := append([]string{"--quiet", "--unit=" + unit, "--slice=" + slice, "--setenv=BERTH_NODE_TEST_USE=" + what, "--setenv=BERTH_NODE_TEST_READY=" + ready}, more...)
	m.run("systemd-run", append(args, self)...)
	m.Cleanup(func() {
		m.try("systemctl", "kill", "-s", "KILL", unit)
		m.try("systemctl", "stop", unit)
		m.try("systemctl", "reset-failed", unit)
	})
	if what == "processor" {
		return unit
	}
	m.await(unit+" uses "+what, func() bool { return exists(ready) || !m.active(unit) })
	return unit
}

func (m *machine) active(unit string) bool {
	state, _ := m.try("systemctl", "is-active", unit)
	return state == "active" || state == "activating"
}
