package attacks

import (
	"os"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// tmpcopyup has the runtime fill memory with what is in the image: files of many gigabytes that
// take nothing on a disk, or as much as the container is not given itself.
func TestCopyUpOfHugeFiles(t *testing.T) {
	const huge = 64 << 30
	limit := int64(32 << 20)
	sparse := func(t *testing.T, name string) {
		check(t, os.WriteFile(name, []byte("head"), 0o644))
		check(t, os.Truncate(name, huge))
	}
	full := func(size int) func(t *testing.T, name string) {
		return func(t *testing.T, name string) {
			check(t, os.WriteFile(name, []byte(strings.Repeat("x", size)), 0o644))
		}
	}
	for name, test := range map[string]struct {
		fill    func(t *testing.T, name string)
		limited bool
		options []string
		refused string
	}{
		"sparse":               {sparse, true, []string{"size=1m"}, ""},
		"sparse, as it is":     {sparse, false, nil, ""},
		"more than the limit":  {full(33 << 20), true, nil, "/linux/resources/memory/limit"},
		"more than the tmpfs":  {full(2 << 20), false, []string{"size=1m"}, "size="},
		"less than the limits": {full(1 << 20), true, []string{"size=2m"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/stat", "-c", "%s %b", "/data/file")
			c.WriteFile("data/other", "", 0o644)
			test.fill(t, c.Path("data/file"))
			c.Spec.Linux.Resources = nil
			if test.limited {
				harness.Controller(t, "memory") // or skip
				c.Spec.Linux.Resources = &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit}}
			}
			c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{
				Destination: "/data", Type: "tmpfs", Source: "tmpfs", Options: append([]string{"tmpcopyup"}, test.options...)})
			r := c.Run()
			if test.refused != "" {
				r.Fails(t, "tmpcopyup to /data", "/file", test.refused)
			} else {
				r.OK(t)
			}
			if got := strings.TrimSpace(r.Stdout); strings.HasPrefix(name, "sparse") && got != "68719476736 8" {
				t.Errorf("size and blocks of the copy: %q", got)
			}
			harness.Report(t, "attacks", 1)
		})
	}
}
