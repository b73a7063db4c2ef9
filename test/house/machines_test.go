package house

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// On a machine that there is no interpreter for, berth builds and says that it can make no
// container: berth version, doctor, and what is asked to make one.
func TestMachineWithoutInit(t *testing.T) {
	if testing.Short() {
		t.Skip("building for another machine is not short")
	}
	t.Run("riscv64", func(t *testing.T) {
		qemu, err := exec.LookPath("qemu-riscv64-static")
		if err != nil {
			t.Skip("no emulator for riscv64 (Debian package qemu-user-static): ", err)
		}
		makesNone(t, "riscv64", qemu)
	})
	t.Run("386", func(t *testing.T) { // where an int is of 32 bits
		if runtime.GOARCH != "amd64" {
			t.Skip("needs amd64, whose kernel executes programs for 386")
		}
		if _, err := os.Stat("/proc/sys/abi/vsyscall32"); err != nil {
			t.Skip("this kernel executes no programs for 386 (CONFIG_IA32_EMULATION): ", err)
		}
		makesNone(t, "386")
	})
}

// makesNone takes what executes programs of the machine, if it is another.
func makesNone(t *testing.T, arch string, emulator ...string) {
	t.Helper()
	berth := berthBy(t, []string{"CGO_ENABLED=0", "GOARCH=" + arch}, nil)
	bundle := t.TempDir()
	if err := os.Mkdir(filepath.Join(bundle, "rootfs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"version"}, 0, "\nbuilt for: linux/" + arch + ", which has no init for containers: none can be made\n"},
		{[]string{"doctor"}, 1, "container init: there is none for " + arch + "\n     so: no container can be made"},
		{[]string{"spec", "--bundle", bundle}, 0, ""},
		{[]string{"--root", filepath.Join(bundle, "state"), "run", "--bundle", bundle, "none"}, 1, "no container init for GOARCH=" + arch},
	} {
		words := append(append(slices.Clone(emulator), berth), c.args...)
		cmd := exec.Command(words[0], words[1:]...)
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
