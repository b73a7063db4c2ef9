package server

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/bootstrap"
)

// logger writes lines as containerd's own log has them; containerd copies them
// from the FIFO named log in the bundle to its standard error.
type logger struct {
	fields string
}

// newLogger makes standard error the bundle's log, unless the program before this one has. A FIFO
// without a reader must not hold us up: a line that finds it full is dropped.
func newLogger(a *bootstrap.Args, open bool) *logger {
	if !open {
	} else if fd, err := unix.Open("log", unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
		unix.Dup3(fd, 2, 0)
		unix.Close(fd)
	}
	return &logger{fields: " id=" + strconv.Quote(a.ID) + " namespace=" + strconv.Quote(a.Namespace) +
		" pid=" + strconv.Itoa(os.Getpid()) + "\n"}
}

func (l *logger) info(text string) { l.line("info", text) }
func (l *logger) warn(text string) { l.line("warning", text) }

// text writes many lines as they are, which the FIFO has no room for at once. It
// waits a little for a reader, but not for ever.
func (l *logger) text(lines []byte) {
	const atOnce = 4096 // PIPE_BUF: what is written whole, or not at all
	for len(lines) > 0 {
		n, err := unix.Write(2, lines[:min(len(lines), atOnce)])
		switch {
		case err == unix.EAGAIN:
			ready, err := unix.Poll([]unix.PollFd{{Fd: 2, Events: unix.POLLOUT}}, 1000)
			if err != unix.EINTR && ready <= 0 {
				return
			}
		case err == unix.EINTR:
		case err != nil:
			return
		default:
			lines = lines[n:]
		}
	}
}

func (l *logger) line(level, text string) {
	b := append([]byte(`time="`), time.Now().Format(time.RFC3339Nano)...)
	b = append(b, `" level=`...)
	b = append(b, level...)
	b = strconv.AppendQuote(append(b, ` msg=`...), text)
	unix.Write(2, append(b, l.fields...))
}
