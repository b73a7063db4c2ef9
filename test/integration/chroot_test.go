package integration

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// In a chroot whose / is a directory like any other, the error says so, and what it says to do
// helps.
func TestInAChroot(t *testing.T) {
	b := harness.New(t)
	harness.NeedTool(t, "unshare", "util-linux")
	harness.NeedTool(t, "chroot", "coreutils")
	c := b.Container("/bin/true")
	c.Spec.Root.Path = "rootfs"
	c.Write()
	jail := c.Rootfs()
	for _, dir := range []string{"proc", "sys", "dev", "run", "bundle/rootfs"} {
		if err := os.MkdirAll(filepath.Join(jail, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(harness.Engine(t))
	if err != nil {
		t.Fatal(err)
	}
	c.WriteFile("berth", string(data), 0o755)
	config := readFile(t, filepath.Join(c.Dir, "config.json"))
	c.WriteFile("bundle/config.json", config, 0o644)

	run := func(prepare string) harness.Result {
		// The root of the container is that of the chroot.
		script := "set -e; " + prepare + ` mount -t proc proc "$0/proc"; mount --rbind /sys "$0/sys"; mount --rbind /dev "$0/dev"
mount --rbind "$0/bin" "$0/bin"; mkdir -p "$0/bundle/rootfs/bin"; mount --rbind "$0/bin" "$0/bundle/rootfs/bin"
exec chroot "$0" "$@"`
		cmd := b.Command("run", "--bundle", "/bundle", c.ID)
		cmd.Binary = "/berth"
		cmd.Wrap = append([]string{"unshare", "--mount", "--propagation", "private", "sh", "-c", script, jail}, cmd.Wrap...)
		return cmd.Run()
	}
	run("").Fails(t, "config.json: /linux/rootfsPropagation: set the propagation of the mount namespace: "+
		"/ is not a mount point, as in a chroot or a build root (before the chroot, mount --bind DIR DIR makes its directory one)")
	run(`mount --bind "$0" "$0";`).OK(t)
}
