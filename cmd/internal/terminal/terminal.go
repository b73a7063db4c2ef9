package terminal

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Raw is a terminal in raw mode.
type Raw struct {
	fd  int
	was unix.Termios
}

// IsTerminal reports whether a descriptor is a terminal.
func IsTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// MakeRaw hands every key to the reader, as cfmakeraw(3) does.
func MakeRaw(fd int) (*Raw, error) {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, os.NewSyscallError("read the terminal's modes", err)
	}
	r := &Raw{fd: fd, was: *t}
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, t); err != nil {
		return nil, os.NewSyscallError("set the terminal's modes", err)
	}
	return r, nil
}

// ClearONLCR has a terminal's output come without carriage returns, for one whose output is copied
// to another terminal that adds them, or to a file that should have none.
func ClearONLCR(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err == nil {
		t.Oflag &^= unix.ONLCR
		err = unix.IoctlSetTermios(fd, unix.TCSETS, t)
	}
	return os.NewSyscallError("clear ONLCR of the container's terminal", err)
}

// Restore puts the terminal back as it was.
func (r *Raw) Restore() { _ = unix.IoctlSetTermios(r.fd, unix.TCSETS, &r.was) }

// CopySize gives one terminal the size of another.
func CopySize(from, to int) {
	if size, err := unix.IoctlGetWinsize(from, unix.TIOCGWINSZ); err == nil {
		_ = unix.IoctlSetWinsize(to, unix.TIOCSWINSZ, size)
	}
}

// CopyOutput copies what a terminal's master gives until its slaves are closed,
// which reads as EIO.
func CopyOutput(w io.Writer, master *os.File) error {
	_, err := io.Copy(w, master)
	if errors.Is(err, unix.EIO) {
		return nil
	}
	return err
}
