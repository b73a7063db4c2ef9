package integration

import (
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// boxAtTerminal runs a box as from a shell in a terminal. What is typed comes back as an echo, so
// the words that a test waits for are never typed in one piece.
func boxAtTerminal(b *harness.Box, args ...string) (*harness.Terminal, *harness.Running) {
	b.T.Helper()
	term := b.Terminal()
	c := box(b, args...)
	c.Stdin, c.Stdout, c.Stderr = term.Slave, term.Slave, term.Slave
	c.Attr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	return term, c.Start()
}

// A shell in a box has job control: ^Z stops the foreground job, and neither the shell nor the box.
func TestBoxJobControl(t *testing.T) {
	harness.NeedTool(t, "bash", "bash")
	b := harness.NewForAnyone(t)
	term, run := boxAtTerminal(b, "--", "bash", "--norc", "--noprofile", "-i")
	term.Until("# ")
	// Not a job that forks now: between a vfork and its execve ^Z stops the child alone, and its
	// parent in the kernel's hands.
	term.Write("sh -c 'echo star\"\"ted; read x'\r")
	term.Until("started\r\n")
	term.Write("\x1a")
	term.Until("Stopped")
	// Without an argument wait passes over a job that is stopped, as this one is for as long as the
	// shell has not heard of its end; and while there is one, the first exit is refused.
	term.Write("kill -KILL %1; while jobs %1 > /dev/null 2>&1; do :; done; echo aga\"\"in\r")
	term.Until("again\r\n")
	term.Write("exit 5\r")
	run.Wait().Exits(t, 5)
}

func TestBoxInterrupt(t *testing.T) {
	b := harness.NewForAnyone(t)
	term, run := boxAtTerminal(b, "--", "/bin/sh", "-c", `trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.05; done`)
	term.Until("ready\r\n")
	term.Write("\x03")
	term.Until("caught\r\n")
	run.Wait().Exits(t, 9)
}

func TestBoxWindowSize(t *testing.T) {
	harness.NeedTool(t, "stty", "coreutils")
	b := harness.NewForAnyone(t)
	term, run := boxAtTerminal(b, "--", "/bin/sh", "-c", `trap 'echo now $(stty size)' WINCH; trap 'exit 0' INT; echo first $(stty size); while :; do sleep 0.05; done`)
	term.Until("first 25 81\r\n")
	term.Resize(50, 132)
	term.Until("now 50 132\r\n")
	term.Write("\x03")
	run.Wait().OK(t)
}

// A box that is ended by --timeout leaves the terminal as it was, and tells on it why.
func TestBoxTimeoutAtTerminal(t *testing.T) {
	b := harness.NewForAnyone(t)
	before := b.Terminal().Settings()
	term, run := boxAtTerminal(b, "--timeout", "300ms", "--", "/bin/sh", "-c", "trap '' INT TERM; while :; do sleep 1; done")
	run.Wait().Exits(t, 124)
	term.Until("--timeout")
	if after := term.Settings(); after != before {
		t.Errorf("settings before: %s\nafter: %s", before, after)
	}
}
