package underqemu

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// variable has the emulator's path in a test that runs under it.
const variable = "BERTH_TEST_QEMU"

// Emulator is the program that this one runs under, "" for none. The kernel does not
// know of it: what executes a program of the same architecture has to name it.
func Emulator() string { return os.Getenv(variable) }

// Tests runs the tests of the calling package that match, compiled for arm64, and gives
// what they print. It skips where they run natively, and where the tools are missing.
func Tests(t *testing.T, pattern string) string {
	t.Helper()
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
	cmd := exec.Command("go", "test", "-count=1", "-v", "-exec", qemu, "-run", pattern, ".")
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0", "GOFLAGS=", variable+"="+qemu)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
