package integration

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// shell is an interactive shell with job control at a terminal; $B is the engine.
func shell(b *harness.Box) (*harness.Terminal, *harness.Running) {
	b.T.Helper()
	harness.NeedTool(b.T, "bash", "bash")
	term := b.Terminal()
	words := append([]string{harness.Engine(b.T)}, b.Globals...)
	rc := b.WriteFile("rc", fmt.Sprintf("PS1='$ '; B='%s'; HISTFILE=\n", strings.Join(words, " ")), 0o644)
	cmd := &harness.Command{Box: b, Binary: "bash", Bare: true, Args: []string{"--noprofile", "--rcfile", rc, "-i"}, Dir: b.Dir}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.Slave, term.Slave, term.Slave
	cmd.Attr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	running := cmd.Start()
	term.Until("$ ")
	return term, running
}

// Ctrl-Z gives the shell back with its terminal as it was, and fg the container.
func TestForegroundStops(t *testing.T) {
	const script = `'echo rea""dy; read x; echo "got <$x>"'`
	for name, command := range map[string]func(b *harness.Box) string{
		"box": func(*harness.Box) string { return "box -- sh -c " + script },
		// Without a terminal of its own the signal comes from ours.
		"piped": func(*harness.Box) string { return "box -- sh -c " + script + " 2>&1 | cat" },
		"run": func(b *harness.Box) string {
			c := b.Container("/bin/sh", "-c", strings.Trim(script, "'"))
			c.Spec.Process.Terminal = true
			c.Write()
			return "run -b " + c.Dir + " " + c.ID
		},
		"exec": func(b *harness.Box) string { return "exec -t " + hanging(b).ID + " sh -c " + script },
		"exec, piped": func(b *harness.Box) string {
			return "exec " + hanging(b).ID + " sh -c " + script + " 2>&1 | cat"
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			command := command(b)
			term, running := shell(b)
			before := ""
			for range 2 {
				term.Write("stty -a | md5sum | sed 's/^/mo''des /'\r")
				term.Until("modes ")
				modes, _, _ := strings.Cut(term.Until("-"), " ")
				term.Until("$ ")
				if before != "" && modes != before {
					t.Errorf("the modes are %q, and were %q", modes, before)
				}
				if before != "" {
					break
				}
				before = modes
				term.Write("$B " + command + "\r")
				term.Until("ready")
				term.Write("\x1a")
				term.Until("Stopped")
				term.Until("\n")
				term.Until("$ ")
			}
			term.Write("echo sh''ell\r")
			term.Until("shell\r\n")
			term.Until("$ ")
			term.Write("fg\r")
			term.Until("$B")
			term.Write("word\r")
			term.Until("got <word>")
			term.Until("$ ") // what is typed before may still be the container's
			term.Write("echo status $?\r")
			term.Until("status 0\r\n")
			term.Write("exit\r")
			running.Wait().OK(t)
		})
	}
}

// A shell in the box has job control of its own: the key is its jobs'.
func TestForegroundStopsInside(t *testing.T) {
	b := harness.NewForAnyone(t)
	term, running := shell(b)
	term.Write("$B box -- bash --norc --noprofile -i\r")
	term.Until("# ")
	term.Write("sh -c 'echo in\"\"side; read x'\r")
	term.Until("inside\r\n")
	term.Write("\x1a")
	term.Until("Stopped")
	term.Until("# ")
	term.Write("fg\r")
	term.Until("read x'\r\n")
	term.Write("word\r")
	term.Until("# ")
	term.Write("echo \"in <$container>\"; exit 3\r")
	term.Until("in <berth>\r\n")
	term.Until("\r\n") // exit
	term.Until("$ ")
	term.Write("echo status $?\r")
	term.Until("status 3\r\n")
	term.Write("exit\r")
	running.Wait().OK(t)
}
