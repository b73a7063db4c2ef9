package program_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestUnderQEMU runs the tests of this package again, compiled for arm64 and
// under qemu-user (Debian's qemu-user-static), so that its interpreter is
// tested wherever the amd64 one is.
func TestUnderQEMU(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("this is the emulated machine, or one where the tests run natively: ", runtime.GOARCH)
	}
	if testing.Short() {
		t.Skip("compiling for another machine is not short")
	}
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		t.Skip("no emulator for arm64 (Debian package qemu-user-static): ", err)
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no compiler for the arm64 tests: ", err)
	}
	cmd := exec.Command("go", "test", "-count=1", "-v", "-exec", qemu, "-run", "^Test", ".")
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0", "GOFLAGS=", "BERTH_PROGRAM_RUNNER="+qemu)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := strings.Count(string(out), "--- PASS"); n < 10 {
		t.Errorf("only %d tests passed\n%s", n, out)
	}
	if testing.Verbose() {
		t.Logf("%s", out)
	}
}
