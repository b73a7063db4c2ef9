package house

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// On a machine that nobody wrote an interpreter for, berth builds and says that it can make no
// container: berth version, doctor, and what is asked to make one.
func TestMachineWithoutInit(t *testing.T) {
	if testing.Short() {
		t.Skip("building for another machine is not short")
	}
	qemu, err := exec.LookPath("qemu-riscv64-static")
	if err != nil {
		t.Skip("no emulator for riscv64 (Debian package qemu-user-static): ", err)
	}
	berth := berthBy(t, []string{"CGO_ENABLED=0", "GOARCH=riscv64"}, nil)
	bundle := t.TempDir()
	if err := os.Mkdir(filepath.Join(bundle, "rootfs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"version"}, 0, "\nbuilt for: linux/riscv64, which has no init for containers: none can be made\n"},
		{[]string{"doctor"}, 1, "container init: there is none for riscv64\n     so: no container can be made"},
		{[]string{"spec", "--bundle", bundle}, 0, ""},
		{[]string{"--root", filepath.Join(bundle, "state"), "run", "--bundle", bundle, "none"}, 1, "no container init for GOARCH=riscv64"},
	} {
		cmd := exec.Command(qemu, append([]string{berth}, c.args...)...)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != c.status || !strings.Contains(string(out), c.want) {
			t.Errorf("berth %q: status %d, want %d, and %q in\n%s", c.args, got, c.status, c.want, out)
		}
	}
	if _, err := os.Lstat(filepath.Join(bundle, "state", "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("berth run leaves the state of its container (%v)", err)
	}
}
