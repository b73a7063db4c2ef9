package harness

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A Terminal is a pseudo-terminal, as a person sits at one.
type Terminal struct {
	*Stream
	// Slave is the side that the engine gets; nil where the container has it.
	Slave *os.File
	box   *Box
}

// Terminal makes a pseudo-terminal of 25 rows and 81 columns.
func (b *Box) Terminal() *Terminal {
	b.T.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		Skip(b.T, "needs a pseudo-terminal: open /dev/ptmx: %v", err)
	}
	t := b.AdoptTerminal(fd)
	b.must(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	b.must(err)
	t.Slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	b.must(err)
	b.T.Cleanup(func() { t.Slave.Close() })
	t.Resize(25, 81)
	return t
}

// AdoptTerminal takes over the master of a container's terminal.
func (b *Box) AdoptTerminal(fd int) *Terminal {
	b.T.Helper()
	// Without it, no deadline could be set for reading.
	b.must(unix.SetNonblock(fd, true))
	file := os.NewFile(uintptr(fd), "terminal")
	b.T.Cleanup(func() { file.Close() })
	return &Terminal{Stream: &Stream{t: b.T, file: file}, box: b}
}

// Resize changes the size of the terminal, for which the kernel sends SIGWINCH to its foreground
// processes.
func (t *Terminal) Resize(rows, cols uint16) {
	t.box.T.Helper()
	t.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	})
}

// Settings are the terminal's modes, as one comparable text.
func (t *Terminal) Settings() string {
	t.box.T.Helper()
	var text string
	t.control(func(fd int) error {
		termios, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			text = fmt.Sprintf("in %o out %o control %o local %o chars %v", termios.Iflag, termios.Oflag, termios.Cflag, termios.Lflag, termios.Cc)
		}
		return err
	})
	return text
}

func (t *Terminal) control(f func(fd int) error) {
	t.box.T.Helper()
	raw, err := t.file.SyscallConn()
	t.box.must(err)
	var inner error
	t.box.must(raw.Control(func(fd uintptr) { inner = f(int(fd)) }))
	t.box.must(inner)
}
