package compile_test

import (
	"runtime"
	"testing"
)

// onAMD64 skips what compares numbers of system calls and flags, which differ
// between machines.
func onAMD64(t *testing.T) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skipf("the golden files are of amd64, this is %s", runtime.GOARCH)
	}
}
