package integration

import (
	"strings"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// atTerminal runs a container in the foreground of a terminal, as from a shell.
func atTerminal(b *harness.Box, c *harness.Container) (*harness.Terminal, *harness.Running) {
	b.T.Helper()
	c.Spec.Process.Terminal = true
	term := b.Terminal()
	cmd := c.Command("run", nil)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.Slave, term.Slave, term.Slave
	cmd.Attr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	return term, cmd.Start()
}

func TestForegroundTerminal(t *testing.T) {
	b := harness.New(t)
	term, run := atTerminal(b, b.Container("/bin/sh", "-c", "echo ready; read x; echo got $x; exit 7"))
	term.Until("ready")
	term.Write("word\r")
	term.Until("got word\r\n")
	run.Wait().Exits(t, 7)
}

// While the container runs the terminal is raw: what is typed goes to the container's own, which
// echoes and edits. Afterwards it is as it was before.
func TestForegroundTerminalModes(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "echo ready; read x")
	before := ""
	term, run := atTerminal(b, c)
	before = b.Terminal().Settings()
	term.Until("ready")
	if term.Settings() == before {
		t.Error("the terminal is not raw while the container runs")
	}
	term.Write("\r")
	run.Wait().OK(t)
	if after := term.Settings(); after != before {
		t.Errorf("settings before: %s\nafter: %s", before, after)
	}
}

func TestForegroundTerminalIsRestoredAfterFailure(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/no/such/program")
	term, run := atTerminal(b, c)
	before := b.Terminal().Settings()
	run.Wait().Exits(t, 1)
	if after := term.Settings(); after != before {
		t.Errorf("settings before: %s\nafter: %s", before, after)
	}
	term.Until("no such file or directory")
}

func TestForegroundTerminalSize(t *testing.T) {
	b := harness.New(t)
	term, run := atTerminal(b, b.Container("/inside", "winch"))
	term.Until("size 25x81")
	term.Resize(50, 132)
	term.Until("size 50x132")
	// The end of input, for a terminal.
	term.Write("\x04")
	run.Wait().OK(t)
}

// The keys that make signals make them for the container's processes, not for the engine.
func TestForegroundTerminalInterrupt(t *testing.T) {
	b := harness.New(t)
	term, run := atTerminal(b, b.Container("/inside", "signals"))
	term.Until("ready")
	term.Write("\x03")
	term.Until("SIGINT")
	term.Write("\x1c")
	term.Until("SIGQUIT")
	run.Signal(syscall.SIGTERM)
	term.Until("SIGTERM")
	run.Wait().OK(t)
}

// Much output must come whole and in order, the end of it too.
func TestForegroundTerminalOutput(t *testing.T) {
	b := harness.New(t)
	term, run := atTerminal(b, b.Container("/bin/sh", "-c", "seq 1 20000; echo end"))
	got := term.Until("end\r\n")
	run.Wait().OK(t)
	lines := strings.Split(strings.ReplaceAll(got, "\r", ""), "\n")
	if len(lines) < 20001 || lines[0] != "1" || lines[19999] != "20000" {
		t.Errorf("%d lines came, the first %q", len(lines), lines[0])
	}
}
