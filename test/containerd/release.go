package containerd

import (
	"cmp"
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

// chosenVariable names the one version, such as v1.7.35, that tests are to run
// with in the place of those that they always run with. test/containerd2/matrix
// sets it.
const chosenVariable = "BERTH_CONTAINERD"

// Chosen is the version that was asked for, or "".
func Chosen() string { return os.Getenv(chosenVariable) }

// Old is Debian's containerd: it knows the second version of the shim's
// protocol, the address as plain text, and shims that it finds by their bundles.
// It skips the test where there is none.
func Old(t testing.TB) Release {
	t.Helper()
	if version := Chosen(); strings.HasPrefix(version, "v1.") {
		return builtRelease(t, version, version)
	}
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

// Modern is containerd 2. It skips the test where it has not been built.
func Modern(t testing.TB) Release {
	t.Helper()
	if version := Chosen(); strings.HasPrefix(version, "v2.") {
		return builtRelease(t, version, version)
	}
	return builtRelease(t, "2", "")
}

// Each runs a test with each release.
func Each(t *testing.T, test func(*testing.T, Release)) {
	version := Chosen()
	if !strings.HasPrefix(version, "v2.") {
		t.Run(cmp.Or(version, "1.6"), func(t *testing.T) { test(t, Old(t)) })
	}
	if !strings.HasPrefix(version, "v1.") {
		t.Run(cmp.Or(version, "2"), func(t *testing.T) { test(t, Modern(t)) })
	}
}

// builtRelease is what test/containerd2/build has built of a version, "" for the usual.
// To build it takes minutes, so that is done by who wants these tests, and not by
// the tests.
func builtRelease(t testing.TB, name, version string) Release {
	t.Helper()
	dir, err := folder(version)
	if err != nil {
		t.Skipf("containerd %s has not been built: test/containerd2/build %s", name, version)
	}
	return Release{Name: name, Daemon: filepath.Join(dir, "containerd"), Ctr: filepath.Join(dir, "ctr"), Modern: !strings.HasPrefix(version, "v1.")}
}

var (
	foldersLock sync.Mutex
	folders     = map[string]string{} // by version
)

func folder(version string) (string, error) {
	if dir := os.Getenv("BERTH_CONTAINERD2"); dir != "" && version == "" {
		return dir, nil
	}
	foldersLock.Lock()
	defer foldersLock.Unlock()
	if dir := folders[version]; dir != "" {
		return dir, nil
	}
	top, err := moduleFolder()
	if err != nil {
		return "", err
	}
	args := []string{"--cached"}
	if version != "" {
		args = append(args, version)
	}
	out, err := exec.Command(filepath.Join(top, "test/containerd2/build"), args...).Output()
	if err == nil {
		folders[version] = strings.TrimSpace(string(out))
	}
	return folders[version], err
}
