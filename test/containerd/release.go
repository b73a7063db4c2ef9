package containerd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Release is one containerd that is installed here.
type Release struct {
	Name   string // for the names of tests
	Daemon string // the program
	Ctr    string
	// Modern daemons have the third version of the configuration.
	Modern bool
}

// Old is Debian's containerd: it knows the second version of the shim's
// protocol, the address as plain text, and shims that it finds by their bundles.
// It skips the test where there is none.
func Old(t testing.TB) Release {
	t.Helper()
	path, err := exec.LookPath("containerd")
	if err != nil {
		t.Skip("containerd is not installed")
	}
	ctr, err := exec.LookPath("ctr")
	if err != nil {
		t.Skip("containerd's ctr is not installed")
	}
	return Release{Name: "1.6", Daemon: path, Ctr: ctr}
}

// modernFolder finds what test/containerd2/build has built. To build it takes
// minutes, so that is done by who wants these tests, and not by the tests.
var modernFolder = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("BERTH_CONTAINERD2"); dir != "" {
		return dir, nil
	}
	top, err := moduleFolder()
	if err != nil {
		return "", err
	}
	out, err := exec.Command(filepath.Join(top, "test/containerd2/build"), "--cached").Output()
	return strings.TrimSpace(string(out)), err
})

// Modern is containerd 2. It skips the test where it has not been built.
func Modern(t testing.TB) Release {
	t.Helper()
	dir, err := modernFolder()
	if err != nil {
		t.Skip("containerd 2 has not been built: test/containerd2/build does")
	}
	return Release{Name: "2", Daemon: filepath.Join(dir, "containerd"), Ctr: filepath.Join(dir, "ctr"), Modern: true}
}

// Each runs a test with each release.
func Each(t *testing.T, test func(*testing.T, Release)) {
	t.Run("1.6", func(t *testing.T) { test(t, Old(t)) })
	t.Run("2", func(t *testing.T) { test(t, Modern(t)) })
}
