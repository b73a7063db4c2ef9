package compile

import (
	"github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

const (
	masterOfTerminals = "/dev/pts/ptmx"
	consolePath       = "/dev/console"
)

// terminal opens a pseudo terminal in the container's own devpts, makes it
// standard input, output and error and /dev/console, and hands its master to
// the runtime.
func (c *compiler) terminal() {
	at := c.p.Process.At + "/terminal"
	c.Because(at, "open a terminal by /dev/pts/ptmx")
	slave := c.Cell()
	c.askFD(program.AskConsole, 0, func(into program.Addr) {
		master := c.Cell()
		// What else has the name might have a lease on it, which an open waits for.
		c.need(masterOfTerminals, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, master)
		c.Call(unix.SYS_FCNTL, master.Value(), program.Int(unix.F_SETFL), program.Imm(unix.O_RDWR))
		c.Call(unix.SYS_IOCTL, master.Value(), program.Imm(unix.TIOCSPTLCK), c.Zeroed(8).Arg())
		// By TIOCGPTPEER the slave is opened through the master, not by a name that
		// may lead to another devpts (4.13).
		c.Call(unix.SYS_IOCTL, master.Value(), program.Imm(unix.TIOCGPTPEER), program.Imm(unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)).Into(slave)
		if size := c.p.Process.Console; size != nil {
			// struct winsize: rows and columns of 16 bits each.
			packed := uint64(uint16(size.Height)) | uint64(uint16(size.Width))<<16
			c.Call(unix.SYS_IOCTL, master.Value(), program.Imm(unix.TIOCSWINSZ), c.Words(program.Imm(packed)).Arg())
		}
		c.Call(program.Set, master.Value()).IntoAddr(into)
	})
	if p := &c.p.Process; p.UID != 0 {
		// Or it could not open its own terminal by name. The group stays tty, which
		// devpts has given it.
		kept := c.NewLabel()
		c.Call(unix.SYS_FCHOWN, slave.Value(), program.Int(int64(p.UID)), program.Int(-1)).Expect(kept, unix.EPERM, unix.EINVAL)
		c.Place(kept)
	}
	c.useTerminal(slave)
	if !c.late {
		c.controlTerminal()
	}
	if c.p.Namespace("mount") != nil && c.root != (program.Cell{}) {
		c.Because(at, "mount the terminal on /dev/console")
		tree := c.Cell()
		c.Call(unix.SYS_OPEN_TREE, slave.Value(), c.empty.Arg(), program.Imm(cloneTree|unix.AT_EMPTY_PATH)).Into(tree)
		target := c.target(consolePath, false)
		c.attach(tree, target)
		c.close(target)
		c.close(tree)
	}
}

// useTerminal makes a terminal the standard streams.
func (c *compiler) useTerminal(slave program.Cell) {
	for fd := range int64(3) {
		c.Call(unix.SYS_DUP3, slave.Value(), program.Int(fd), program.Int(0))
	}
}
