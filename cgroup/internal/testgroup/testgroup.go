package testgroup

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/proc/mountinfo"
)

// Mount finds where a hierarchy is mounted: the file system type, cgroup or cgroup2,
// and for the first a controller. Without one it skips the test.
func Mount(t *testing.T, fsType, controller string) string {
	t.Helper()
	mounts, err := mountinfo.Of("self", fsType)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mounts {
		if controller == "" || slices.Contains(strings.Split(m.Super, ","), controller) {
			return m.Point
		}
	}
	t.Skipf("no %s is mounted here with the controller %q", fsType, controller)
	return ""
}

// Make makes a cgroup that is gone after the test, or skips where none can be made.
func Make(t *testing.T, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "berth-test-")
	if errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS) {
		t.Skipf("no cgroup can be made here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Errorf("leaves a cgroup behind: %v", err)
		}
	})
	return dir
}
