package harness

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// NeedCriu skips the test where criu can't write anything down, and returns the global flags that have the engine use
// the one that can. BERTH_CRIU names another than that of PATH.
func NeedCriu(t testing.TB) (flags []string) {
	t.Helper()
	criu := os.Getenv("BERTH_CRIU")
	if criu == "" {
		criu = NeedTool(t, "criu", "criu")
	} else {
		flags = []string{"--criu", criu}
	}
	if os.Geteuid() != 0 {
		Skip(t, "needs root")
	}
	if err := tryCriu(t, criu); err != nil {
		Skip(t, "needs a criu that works on this kernel: %v", err)
	}
	return flags
}

// tryCriu lets criu write a process down that has nothing to do with the engine.
func tryCriu(t testing.TB, criu string) error {
	t.Helper()
	process := exec.Command("sleep", "100")
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		process.Process.Kill()
		process.Wait()
	}()
	out, err := exec.Command(criu, "dump", "-t", strconv.Itoa(process.Process.Pid), "-D", t.TempDir()).CombinedOutput()
	if err == nil {
		return nil
	}
	// The first error is the reason, the others follow from it.
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "Error (") {
			return fmt.Errorf("criu dump: %s", strings.TrimSpace(line))
		}
	}
	return fmt.Errorf("criu dump: %w", err)
}
