package dropin

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// serveSystemctl makes a systemctl that knows one thing, to restart a unit, and has this process do
// it: who starts a daemon has to wait for its end.
func (m *Machine) serveSystemctl(unit string, restart func() error) {
	m.b.T.Helper()
	m.b.WriteFile("bin/systemctl", fmt.Sprintf(`#!/bin/sh
[ "$*" = "restart %[3]s" ] || exit 2
echo restart > %[1]s
read -r answer < %[2]s
[ "$answer" = ok ] || { echo "$answer" >&2; exit 1; }
`, m.b.Path("asked"), m.b.Path("answer"), unit), 0o755)
	for _, name := range []string{"asked", "answer"} {
		m.must(syscall.Mkfifo(m.b.Path(name), 0o600))
	}
	// For reading and writing: opening waits for nobody, and the end never comes by itself.
	asked, err := os.OpenFile(m.b.Path("asked"), os.O_RDWR, 0)
	m.must(err)
	answer, err := os.OpenFile(m.b.Path("answer"), os.O_RDWR, 0)
	m.must(err)
	done := make(chan struct{})
	m.b.T.Cleanup(func() {
		asked.Close()
		<-done
		answer.Close()
	})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(asked)
		for lines.Scan() {
			text := "ok"
			if err := restart(); err != nil {
				text = err.Error()
			}
			if _, err := fmt.Fprintln(answer, text); err != nil && !errors.Is(err, os.ErrClosed) {
				return
			}
		}
	}()
}
