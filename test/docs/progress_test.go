package docs

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// On a terminal a line tells that something goes on; in a pipe there is nothing but what the
// command says.
func TestWithProgress(t *testing.T) {
	b := harness.New(t)
	script, err := filepath.Abs("../../build/scripts/with-progress")
	if err != nil {
		t.Fatal(err)
	}
	said := func(cmd *exec.Cmd) string {
		out, err := cmd.Output()
		if err == nil || cmd.ProcessState.ExitCode() != 3 {
			t.Errorf("it ended with %v, not with 3", err)
		}
		return string(out)
	}
	quiet := exec.Command(script, "a title", "sh", "-c", "echo said; exit 3")
	if out := said(quiet); out != "said\n" {
		t.Errorf("in a pipe: %q", out)
	}
	term := b.Terminal()
	shown := exec.Command(script, "a title", "sh", "-c", "echo said; while ! test -e "+b.Path("go")+"; do sleep 0.05; done; exit 3")
	shown.Stderr = term.Slave
	done := make(chan string)
	go func() { done <- said(shown) }()
	term.Until("a title, ")
	term.Until("s: said")
	b.WriteFile("go", "", 0o644)
	if out := <-done; out != "said\n" {
		t.Errorf("on a terminal: %q", out)
	}
}
