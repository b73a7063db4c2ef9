package integration

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// boxAmong runs a box as root in a mount namespace of its own, after some mounts were made there.
func boxAmong(t *testing.T, b *harness.Box, mounts string, args ...string) harness.Result {
	t.Helper()
	if os.Geteuid() != 0 {
		harness.Skip(t, "needs root, to mount file systems")
	}
	c := box(b, args...)
	c.Wrap = []string{"unshare", "--mount", "sh", "-ec", mounts + `; exec "$@"`, "sh"}
	return c.Run()
}

// Overlays of overlays of overlays are refused, and so are those of what lies on them.
const refusedOverlays = `mkdir -p one two; mount -t tmpfs tmpfs /media; mkdir /media/a /media/b /media/c
mount -t overlay overlay -o lowerdir=one:two /mnt
for dir in /media/a /media/b; do mount -t overlay overlay -o lowerdir=/mnt:two $dir; done`

// What is not as it should be is said once, whatever the number of file systems.
func TestBoxWarnsOnceOfLayers(t *testing.T) {
	b := harness.New(t)
	r := boxAmong(t, b, refusedOverlays, "--", "/bin/sh", "-c", "for dir in /media/a /media/b; do echo x 2>/dev/null > $dir/new || echo refused; done; echo x > /media/c/new").OK(t)
	if r.Stdout != "refused\nrefused\n" {
		t.Errorf("%q", r.Stdout)
	}
	if want := "berth box: the kernel refuses an overlay of /media/a, of /media/b: they are read-only, and their sockets and FIFOs are the host's\n"; r.Stderr != want {
		t.Errorf("%q, want %q", r.Stderr, want)
	}
}

// A FAT file system has no sockets, and a command that does not begin there is told nothing of it.
func TestBoxBesideFAT(t *testing.T) {
	b := harness.New(t)
	b.WriteFile("fat", fatImage(), 0o600)
	mount := "mount -t vfat -o loop fat /media"
	if out, err := exec.Command("unshare", "--mount", "sh", "-ec", "cd "+b.Dir+"; "+mount).CombinedOutput(); err != nil {
		harness.Skip(t, "can't mount a FAT file system: %s", out)
	}
	write := []string{"--", "/bin/sh", "-c", "ls -d /media; echo x 2>/dev/null > /media/new || echo refused"}
	r := boxAmong(t, b, mount, write...).OK(t)
	if r.Stdout != "/media\nrefused\n" || r.Stderr != "" {
		t.Errorf("%q %q", r.Stdout, r.Stderr)
	}
	r = boxAmong(t, b, mount, append([]string{"-w", "/media"}, write...)...).OK(t)
	if r.Stdout != "/media\nrefused\n" || strings.Count(r.Stderr, "an overlay of /media: it is read-only") != 1 {
		t.Errorf("%q %q", r.Stdout, r.Stderr)
	}
}

// fatImage is an empty FAT12 file system: a boot sector, a table, the root directory, 61 clusters.
func fatImage() string {
	image := make([]byte, 64*512)
	copy(image, "\xeb\x3c\x90BERTH   \x00\x02\x01\x01\x00\x01\x10\x00\x40\x00\xf8\x01\x00\x20\x00\x01\x00")
	copy(image[36:], "\x80\x00\x29\x01\x02\x03\x04NO NAME    FAT12   ")
	copy(image[510:], "\x55\xaa\xf8\xff\xff")
	return string(image)
}

// A file system that can't be looked at, as its program has died, is left out.
func TestBoxBesideDeadFUSE(t *testing.T) {
	b := harness.New(t)
	// Descriptor 3 is closed before the box is made, and with it the connection.
	mount := "exec 3<>/dev/fuse; mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 dead /media; exec 3>&-"
	if out, err := exec.Command("unshare", "--mount", "sh", "-ec", mount).CombinedOutput(); err != nil {
		harness.Skip(t, "can't mount a FUSE file system: %s", out)
	}
	r := boxAmong(t, b, mount+"; ls /media 2>/dev/null && exit 9", "--", "/bin/sh", "-c", "ls -a /media | wc -l; echo x > /media/new && cat /media/new").OK(t)
	if r.Stdout != "2\nx\n" || r.Stderr != "" {
		t.Errorf("%q %q", r.Stdout, r.Stderr)
	}
}
