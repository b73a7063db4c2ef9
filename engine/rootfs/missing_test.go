package rootfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMissing(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"etc", "there", "var"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"etc/resolv.conf": "../run/systemd/resolve/stub-resolv.conf", "var/run": "/run", "up": "../../../../made/x", "loop": "loop",
		"etc/twice": "resolv.conf", "etc/there": "/there",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, want := range map[string]string{
		"/etc/resolv.conf":     "/run /run/systemd /run/systemd/resolve /run/systemd/resolve/stub-resolv.conf",
		"/etc/twice":           "/run /run/systemd /run/systemd/resolve /run/systemd/resolve/stub-resolv.conf",
		"/var/run/a/b":         "/run /run/a /run/a/b",
		"/up":                  "/made /made/x",
		"/up/y":                "/made /made/x /made/x/y",
		"/etc/there/new":       "/there/new",
		"/there":               "/there", // made meanwhile
		"/etc/x/../there/y":    "/etc/x /there/y",
		"/../etc/./resolv.new": "/etc/resolv.new",
	} {
		got, err := Missing(root.fd, name)
		if err != nil || !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %v, %v, want %s", name, got, err, want)
		}
	}
	if got, err := Missing(root.fd, "/loop/x"); err != unix.ELOOP {
		t.Errorf("a loop: %v, %v", got, err)
	}
}
