package containerd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// makeRoot makes a root file system of a static busybox.
func (d *Daemon) makeRoot() {
	d.T.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		d.T.Skip("busybox is not installed")
	}
	d.Root = filepath.Join(d.Dir, "busybox")
	for _, sub := range []string{"bin", "etc", "proc", "sys", "dev", "tmp"} {
		if err := os.MkdirAll(filepath.Join(d.Root, sub), 0o755); err != nil {
			d.T.Fatal(err)
		}
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		d.T.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Root, "bin/busybox"), program, 0o755); err != nil {
		d.T.Fatal(err)
	}
	list, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		d.T.Skipf("busybox does not list its applets: %v", err)
	}
	for _, applet := range strings.Fields(string(list)) {
		if applet != "busybox" {
			if err := os.Symlink("busybox", filepath.Join(d.Root, "bin", applet)); err != nil {
				d.T.Fatal(err)
			}
		}
	}
}
