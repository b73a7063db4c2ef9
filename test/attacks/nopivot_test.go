package attacks

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
	"github.com/berth-runtime/berth/test/inside/view"
)

// Without pivot_root the host's root lies below the container's, and who may unmount comes to it.
// There must be no procfs then that nothing is masked of, or the host's kernel parameters are at
// hand.
func TestHostsMountsWithoutPivotRoot(t *testing.T) {
	for name, with := range map[string]func(c *harness.Container){
		"plain":               func(c *harness.Container) {},
		"shared":              func(c *harness.Container) { c.Spec.Linux.RootfsPropagation = "shared" },
		"in a user namespace": func(c *harness.Container) { harness.UserNamespace(c.Spec) },
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container()
			with(c)
			check(t, os.Chmod(c.Rootfs(), 0o777))
			for _, set := range []*[]string{&c.Spec.Process.Capabilities.Bounding, &c.Spec.Process.Capabilities.Effective, &c.Spec.Process.Capabilities.Permitted} {
				*set = append(slices.Clone(*set), "CAP_SYS_ADMIN")
			}
			c.Spec.Process.Args = []string{"/inside", "try", "list=/bin", "escape", "list=/bin", "read=/proc/sys/kernel/ostype", "list=/sys/kernel", "list=/proc"}
			var list []view.Attempt
			harness.Decode(t, c.Run("--no-pivot").OK(t).Stdout, &list)
			if list[1].Errno != "" || strings.Contains(list[2].Result, "busybox") && list[0].Result == list[2].Result {
				t.Errorf("the attack does not leave the root: %+v", list[1])
			}
			for _, a := range list[3:] {
				if a.Errno == "" && a.Result != "" {
					t.Errorf("%s has %.200q", a.What, a.Result)
				}
			}
			harness.Report(t, "attacks", 1)
		})
	}
}
