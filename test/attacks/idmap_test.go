package attacks

import (
	"os"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// A mount on an id-mapped bind mount is the container's alone. The kernel would mount it on
// the source too, where that is shared and the bind mount its peer; the leak check sees it.
func TestMountOnAnIDMappedMount(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "grep -c ' /data/sub ' /proc/self/mountinfo")
	harness.UserNamespace(c.Spec)
	source := c.Path("source")
	for _, dir := range []string{source + "/sub", c.Path("data")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c.Spec.Mounts = append(c.Spec.Mounts,
		specs.Mount{Destination: "/data", Type: "bind", Source: source, Options: []string{"bind", "idmap"}},
		specs.Mount{Destination: "/data/sub", Type: "tmpfs", Source: "tmpfs"})
	if r := c.Run().OK(t); r.Stdout != "1\n" {
		t.Errorf("the container sees %q mounts on /data/sub", r.Stdout)
	}
}
