package dropin

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/berth-runtime/berth/test/harness"
)

// daemon is a client that serves calls, with a log that is shown where the test fails.
type daemon struct {
	b   *harness.Box
	log *os.File
	cmd *exec.Cmd
}

func newDaemon(b *harness.Box, name string) *daemon {
	b.T.Helper()
	log, err := os.Create(b.Path(name + ".log"))
	if err != nil {
		b.T.Fatal(err)
	}
	d := &daemon{b: b, log: log}
	b.T.Cleanup(func() {
		d.stop()
		if b.T.Failed() {
			text, _ := os.ReadFile(log.Name())
			b.T.Logf("the log of %s ends:\n%s", name, text[max(0, len(text)-6000):])
		}
		log.Close()
	})
	return d
}

// start starts it anew.
func (d *daemon) start(cmd *exec.Cmd) error {
	d.stop()
	cmd.Stdout, cmd.Stderr = d.log, d.log
	// It ends with the tests, also where they are killed. The signal comes with the end of the
	// thread that starts it, and those of Go stay.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return err
	}
	d.cmd = cmd
	return nil
}

func (d *daemon) stop() {
	if d.cmd == nil {
		return
	}
	d.cmd.Process.Signal(syscall.SIGTERM)
	d.cmd.Wait()
	d.cmd = nil
}
