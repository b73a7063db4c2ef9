package integration

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// chrooted calls the engine in a chroot whose / is a directory like any other, unless prepare makes
// it a mount point. /bundle has a config.json in it.
func chrooted(b *harness.Box, prepare, flags string) func(words ...string) *harness.Command {
	t := b.T
	t.Helper()
	harness.NeedTool(t, "unshare", "util-linux")
	harness.NeedTool(t, "chroot", "coreutils")
	c := b.Container("/bin/sh", "-c", "read word; read more <&3; echo got $word $more")
	c.Spec.Root.Path = "rootfs"
	c.Write()
	jail := c.Rootfs()
	for _, dir := range []string{"proc", "sys", "dev", "run", "tmp", "bundle/rootfs"} {
		if err := os.MkdirAll(filepath.Join(jail, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(jail, "tmp"), 0o1777); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(harness.Engine(t))
	if err != nil {
		t.Fatal(err)
	}
	c.WriteFile("berth", string(data), 0o755)
	config, err := os.ReadFile(filepath.Join(c.Dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	c.WriteFile("bundle/config.json", string(config), 0o644)
	input := b.WriteFile("input", "word\n", 0o644)
	// The root of the container is that of the chroot.
	script := "set -e; " + prepare + ` mount -t proc proc "$0/proc"; mount --rbind /sys "$0/sys"; mount --rbind /dev "$0/dev"
mount --rbind "$0/bin" "$0/bin"; mkdir -p "$0/bundle/rootfs/bin"; mount --rbind "$0/bin" "$0/bundle/rootfs/bin"
exec chroot ` + flags + ` "$0" "$@"`
	return func(words ...string) *harness.Command {
		cmd := b.Command(words...)
		cmd.Binary = "/berth"
		cmd.Wrap = slices.Concat([]string{"unshare", "--mount", "--propagation", "private", "sh", "-c", script, jail}, cmd.Wrap)
		cmd.Stdin, cmd.Extra = opened(b, input), []*os.File{opened(b, input)}
		return cmd
	}
}

func opened(b *harness.Box, path string) *os.File {
	b.T.Helper()
	file, err := os.Open(path)
	if err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(func() { file.Close() })
	return file
}

// In a chroot run and box have the chroot's directory as the root of a mount namespace. Joining
// that namespace does not lead out of it.
func TestInAChroot(t *testing.T) {
	b := harness.New(t)
	berth := chrooted(b, "", "")
	for _, flag := range []string{"--preserve-fds=1", "--no-pivot"} {
		out := berth("run", "--preserve-fds", "1", "--bundle", "/bundle", flag, b.Tag).Run().OK(t).Stdout
		if out != "got word word\n" {
			t.Errorf("with %s it printed %q", flag, out)
		}
	}
	out := berth("box", "--cap-add", "SYS_ADMIN", "--cap-add", "SYS_CHROOT", "--", "/bin/sh", "-c",
		"read word; ls / > /tmp/list && nsenter -m/proc/self/ns/mnt ls / | diff /tmp/list - && echo same $word").Run().OK(t).Stdout
	if out != "same word\n" {
		t.Errorf("the root of the box's mount namespace has other files: %s", out)
	}
	// A mount point does it from outside, as the error says.
	chrooted(b, `mount --bind "$0" "$0";`, "")("run", "--preserve-fds", "1", "--bundle", "/bundle", b.Tag).Run().OK(t)
}

// Where it can't be done without, the error says what is the matter, and what to do.
func TestInAChrootWithout(t *testing.T) {
	b := harness.New(t)
	berth := chrooted(b, "", "")
	const why = "/ is not a mount point, as in a chroot or a build root (before the chroot, mount --bind DIR DIR makes its directory one)"
	berth("create", "--bundle", "/bundle", b.Tag).Run().Fails(t, "config.json: /linux/rootfsPropagation: set the propagation of the mount namespace: "+why)
	berth("create", "--bundle", "/bundle", "--no-pivot", b.Tag).Run().Fails(t, "find the mounts of the host: "+why)
	cmd := chrooted(b, "", "--userspec=1000:1000")("box", "--", "/bin/true")
	cmd.Bare = true // the state directory of the test is root's
	cmd.Run().FailsWith(t, 125, "(there are no user namespaces in a chroot, see user_namespaces(7): only root can make containers here)")
}
