package attacks

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// Standard streams are given to the process's user. The terminal that the caller sits at is not:
// its owner could go on to read, as any process of theirs on the host, what the caller types there
// after the container.
func TestTerminalOfTheCallerStaysHis(t *testing.T) {
	const stranger = 54322
	for name, sits := range map[string]bool{"the caller sits at it": true, "made for the container": false} {
		b := harness.New(t)
		terminal := b.Terminal()
		c := b.Container("/bin/true")
		c.Spec.Process.User.UID = stranger
		cmd := c.Command("run", nil)
		cmd.Stdin, cmd.Stdout = terminal.Slave, terminal.Slave
		cmd.Attr = &syscall.SysProcAttr{Setsid: true, Setctty: sits, Ctty: 0}
		cmd.Run().OK(t)
		var st unix.Stat_t
		check(t, unix.Fstat(int(terminal.Slave.Fd()), &st))
		if given := st.Uid == stranger; given == sits {
			t.Errorf("%s: it belongs to user %d now", name, st.Uid)
		}
		harness.Report(t, "attacks", 1)
	}
}
