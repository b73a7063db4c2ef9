package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// What the tests make on the host lies below names with this prefix, so that
// TestMain can tell what they left.
var testPrefix = "berth-test-" + strconv.Itoa(os.Getpid()) + "-"

var testCount atomic.Int32

// A test process that is started again with this variable sleeps until it is
// killed, or does what the variable says.
const roleVariable = "BERTH_CGROUP_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		playRole(role)
	}
	code := m.Run()
	if left := leftGroups(); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "cgroups left by the tests: %q\n", left)
		code = 1
	}
	os.Exit(code)
}

func leftGroups() []string {
	host, err := Detect()
	if err != nil {
		return nil
	}
	base, err := baseForTest(host)
	if err != nil {
		return nil
	}
	var left []string
	for _, h := range host.Hierarchies() {
		matches, _ := filepath.Glob(h.Mountpoint + base + "/" + testPrefix + "*")
		left = append(left, matches...)
	}
	return left
}

// hostForTest gives the real host, or skips where groups cannot be made on it.
func hostForTest(t testing.TB) *Host {
	t.Helper()
	host, err := Detect()
	if err != nil {
		t.Fatal(err)
	}
	if host.Mode() == None {
		t.Skip("no cgroup file system is mounted here")
	}
	if testBase, err = baseForTest(host); err != nil {
		t.Fatal(err)
	}
	probe, err := host.Create(testPath(), Supervisor("supervisor"), WherePermitted())
	if Denied(err) {
		t.Skipf("cgroups cannot be made here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	left := len(host.Hierarchies()) - len(probe.Made())
	if err := probe.Destroy(); err != nil {
		t.Fatal(err)
	}
	if left > 0 {
		t.Skipf("%d hierarchies are not for this user", left)
	}
	return host
}

// baseForTest is the root for root, also in a unit that is delegated to this process: all below
// that is the process's own, and the tests need groups that are not.
func baseForTest(host *Host) (string, error) {
	if host.privileged() {
		return "/", nil
	}
	return host.Base()
}

// testBase is where this process may make groups.
var testBase = "/"

func testPath() string {
	return strings.TrimSuffix(testBase, "/") + "/" + testPrefix + strconv.Itoa(int(testCount.Add(1)))
}

// makeGroup makes a group that is killed and removed at the end of the test.
func makeGroup(t testing.TB, host *Host, opts ...Option) *Group {
	t.Helper()
	g, err := host.Create(testPath(), append(opts, Supervisor("supervisor"))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroup(t, g) })
	return g
}

func removeGroup(t testing.TB, g *Group) {
	t.Helper()
	if err := g.Kill(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("kill: %v", err)
	}
	if err := g.Destroy(); err != nil {
		t.Errorf("destroy: %v", err)
	}
}

// need skips a test where a controller is missing.
func need(t testing.TB, host *Host, controller string) *Hierarchy {
	t.Helper()
	h := host.Controller(controller)
	if h == nil {
		t.Skipf("this host has no %s controller", controller)
	}
	return h
}

// start runs a role of the test program inside of the group: cloned into it on
// version 2, moved on version 1.
func start(t testing.TB, g *Group, role string) *exec.Cmd {
	t.Helper()
	cmd := roleCommand(role)
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

func roleCommand(role string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	return cmd
}

// fakeHost lays out a tree of files and detects it. A name that ends in a slash is a directory.
func fakeHost(t testing.TB, files map[string]string) *Host {
	t.Helper()
	host, err := DetectIn(fakeTree(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return host
}

func fakeTree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
