package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/containerd"
)

const cutVariable = "BERTH_TEST_CUT"

// A test that is cut off, by go test's time limit say, leaves nothing of its containers, keepers
// and containerd.
func TestCutOff(t *testing.T) {
	if os.Getenv(cutVariable) != "" {
		containerd.Each(t, func(t *testing.T, r containerd.Release) {
			var env []string
			if runtime.GOARCH == "amd64" {
				env = append(env, "BERTH_SHIM_KEEPER=1")
			}
			d := newDaemon(t, r, env...)
			for range 2 {
				d.run("")
			}
			fmt.Println("\n" + containerd.CutMark + d.Dir)
			select {} // until it is killed
		})
	}
	lookFor(t, "containerd")
	dir := containerd.Cut(t, t.Name(), cutVariable+"=1", "BERTH_SHIM="+containerd.BuildShim(t))
	wait.Until(t, "nothing is left", func() bool {
		groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + filepath.Base(dir))
		_, err := os.Stat(dir)
		return os.IsNotExist(err) && len(groups) == 0 && !anyProcessOf(dir)
	})
}

// anyProcessOf says whether a process has a path in a directory on its command line.
func anyProcessOf(dir string) bool {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")); err == nil && strings.Contains(string(text), dir+"/") {
			return true
		}
	}
	return false
}
