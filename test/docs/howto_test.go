package docs

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// needs says what the blocks of a how-to can't do without.
var needs = map[string]func(t *testing.T){
	"cap-a-build": func(t *testing.T) {
		for _, name := range []string{"cpu", "memory", "pids"} {
			harness.Controller(t, name)
		}
		harness.NeedTool(t, "make", "make")
	},
	"checkpoint": needCriu,
	"limits":     func(t *testing.T) { harness.Controller(t, "pids") },
}

// needCriu looks whether criu can write anything down on this kernel.
func needCriu(t *testing.T) {
	criu := harness.NeedTool(t, "criu", "criu")
	process := exec.Command("sleep", "1000")
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer process.Wait() // criu has ended it, or the next does
	defer process.Process.Kill()
	out, err := exec.Command(criu, "dump", "-t", strconv.Itoa(process.Process.Pid), "-D", t.TempDir()).CombinedOutput()
	if err != nil {
		why, _, _ := strings.Cut(string(out), "\n")
		harness.Skip(t, "needs a criu that works on this kernel: %v: %s", err, why)
	}
}

// Every how-to does what it says.
func TestHowTos(t *testing.T) {
	pages, err := filepath.Glob("../../docs/howto/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%q, %v", pages, err)
	}
	for _, name := range pages {
		name := strings.TrimSuffix(filepath.Base(name), ".md")
		t.Run(name, func(t *testing.T) {
			harness.NeedTool(t, "busybox", "busybox-static")
			if need := needs[name]; need != nil {
				need(t)
			}
			b := harness.New(t)
			defer b.ReapOrphans()
			page(t, "docs/howto/"+name+".md", "", commands(t, b, "berth"))
		})
	}
}
