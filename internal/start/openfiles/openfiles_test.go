// Not in the package itself, which a test would make import something.
package openfiles_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/start/openfiles"
)

// TestFree starts this program with some descriptors, and with a pipe as its input that
// does not block, for which package os makes more.
func TestFree(t *testing.T) {
	const variable = "BERTH_TEST_FREE"
	if os.Getenv(variable) != "" {
		free, known := openfiles.Free()
		fmt.Println("free", free, known)
		return
	}
	if _, known := openfiles.Free(); !known {
		t.Skip("there is no assembly for this machine")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for n := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestFree$")
		cmd.Env = append(os.Environ(), variable+"=1")
		cmd.Stdin = r
		for range n {
			cmd.ExtraFiles = append(cmd.ExtraFiles, w)
		}
		out, err := cmd.CombinedOutput()
		if want := fmt.Sprintf("free %d true\n", 3+n); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%d descriptors: want %q, got %q, %v", n, want, out, err)
		}
	}
}
