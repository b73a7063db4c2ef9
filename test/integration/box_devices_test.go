package integration

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// A device that was given can be opened in the box, by just what was allowed.
func TestBoxDevice(t *testing.T) {
	asBoth(t, func(t *testing.T, b *harness.Box, root bool) {
		node := b.Path("zero")
		err := unix.Mknod(node, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5)))
		if err == nil {
			err = os.Chmod(node, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		const look = "head -c 3 /dev/given 2>/dev/null | wc -c"
		if r := box(b, "--device", node+":/dev/given", "--", "/bin/sh", "-c", look).Run().OK(t); strings.TrimSpace(r.Stdout) != "3" {
			t.Errorf("%q, %s", r.Stdout, r.Stderr)
		}
		if r := box(b, "--ro", node+":/dev/given", "--", "/bin/sh", "-c", look).Run().OK(t); strings.TrimSpace(r.Stdout) != "0" {
			t.Errorf("a device can be used that was only shown: %q", r.Stdout)
		}
		if !root {
			box(b, "--device", node+":/dev/given:r", "--", "/bin/true").Run().Exits(t, 125)
			return
		}
		if _, err := os.Stat("/dev/fuse"); err != nil {
			harness.Skip(t, "needs a device that no container may use as it is: %v", err)
		}
		const try = `for how in "<" ">>"; do if (eval ": $how /dev/fuse") 2>/dev/null; then echo yes; else echo no; fi; done`
		for access, want := range map[string]string{"": "yes\nyes\n", ":r": "yes\nno\n", ":/dev/fuse:w": "no\nyes\n"} {
			if r := box(b, "--device", "/dev/fuse"+access, "--", "/bin/sh", "-c", try).Run().OK(t); r.Stdout != want {
				t.Errorf("%q: %q, want %q", access, r.Stdout, want)
			}
		}
	})
}

func TestBoxMount(t *testing.T) {
	b := harness.NewForAnyone(t)
	b.WriteFile("data/in", "in\n", 0o644)
	r := box(b, "--mount", "type=bind,src=data,dst=/kept", "--mount", "type=bind,source=data,target=/data,readonly", "--mount", "type=tmpfs,dst=/usr/share,tmpfs-size=64K",
		"--", "/bin/sh", "-c", "cat /data/in; echo x 2>/dev/null > /data/no || echo refused; echo kept > /kept/new; head -c 100000 /dev/zero 2>/dev/null > /usr/share/big || echo full").Run().OK(t)
	if r.Stdout != "in\nrefused\nfull\n" {
		t.Errorf("%q, %s", r.Stdout, r.Stderr)
	}
	if text, err := os.ReadFile(b.Path("data/new")); string(text) != "kept\n" {
		t.Errorf("%q, %v", text, err)
	}
	for _, wrong := range []string{"src=data,dst=/x", "type=volume,src=v,dst=/x", "type=bind,dst=/x", "type=bind,src=data,dst=/x,colour=red", "type=tmpfs,src=data,dst=/x", "type=bind,src=none,dst=/x"} {
		if r := box(b, "--mount", wrong, "--", "/bin/true").Run().Exits(t, 125); strings.Count(r.Stderr, "\n") != 1 {
			t.Errorf("%q: %q", wrong, r.Stderr)
		}
	}
}
