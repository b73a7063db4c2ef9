package integration

import (
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// Whatever is done to a container is done to its cgroup, so two can't share one.
func TestCgroupInUse(t *testing.T) {
	b := harness.New(t)
	first := b.Container("/bin/sleep", "100").RunDetached()
	second := b.Container("/bin/true")
	second.Spec.Linux.CgroupsPath = first.Spec.Linux.CgroupsPath
	second.Run().Fails(t, "/linux/cgroupsPath", "in use")
	if got := first.State().Status; got != "running" {
		t.Errorf("the first container is %s after that", got)
	}
	first.Delete("--force")
}
