package containerd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

const module = "github.com/berth-runtime/berth"

// built is the directory of the shim that BuildShim makes.
var built = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "berth-shim-test-") })

var buildShim = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("BERTH_SHIM"); path != "" {
		return filepath.Abs(path)
	}
	dir, err := built()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "containerd-shim-berth-v2")
	return path, harness.Build("cmd/containerd-shim-berth-v2", path)
})

// BuildShim builds the shim, once for all tests of a program; BERTH_SHIM names
// one that is built already.
func BuildShim(t testing.TB) string {
	t.Helper()
	path, err := buildShim()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Main runs the tests of a package and removes what they share.
func Main(m *testing.M) {
	if what := os.Getenv(sweepVariable); what != "" {
		guarding(what)
		return
	}
	code := m.Run()
	if dir, err := built(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// moduleFolder is where this module is, from a package of it or from one of a
// module inside it.
func moduleFolder() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find the module's folder: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Shims are the pids of this daemon's shims that serve. Those have the option
// -socket, and it is in the daemon's directory.
func (d *Daemon) Shims() (pids []int) {
	return processesBy(func(cmdline string) bool {
		return strings.HasPrefix(cmdline, d.Shim) && strings.Contains(cmdline, "\x00-socket\x00"+d.Dir+"/")
	})
}

// processesBy finds processes by their command lines, whose words end in zero bytes.
func processesBy(is func(cmdline string) bool) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if cmdline, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")); err == nil && is(string(cmdline)) {
			pids = append(pids, pid)
		}
	}
	return pids
}
