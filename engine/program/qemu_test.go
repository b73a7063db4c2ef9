package program_test

import (
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/test/underqemu"
)

// TestUnderQEMU runs the tests of this package again for arm64, so that its
// interpreter is tested wherever the amd64 one is.
func TestUnderQEMU(t *testing.T) {
	out := underqemu.Tests(t, "^Test")
	if n := strings.Count(out, "--- PASS"); n < 10 {
		t.Errorf("only %d tests passed\n%s", n, out)
	}
	if testing.Verbose() {
		t.Log(out)
	}
}
