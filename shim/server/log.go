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

// newLogger makes standard error the bundle's log. A FIFO without a reader must
// hold up nobody, and a line that finds it full is dropped.
func newLogger(a *bootstrap.Args) *logger {
	if fd, err := unix.Open("log", unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
		unix.Dup3(fd, 2, 0)
		unix.Close(fd)
	}
	return &logger{fields: " id=" + strconv.Quote(a.ID) + " namespace=" + strconv.Quote(a.Namespace) +
		" pid=" + strconv.Itoa(os.Getpid()) + "\n"}
}

func (l *logger) info(text string) { l.line("info", text) }
func (l *logger) warn(text string) { l.line("warning", text) }

func (l *logger) line(level, text string) {
	b := append([]byte(`time="`), time.Now().Format(time.RFC3339Nano)...)
	b = append(b, `" level=`...)
	b = append(b, level...)
	b = strconv.AppendQuote(append(b, ` msg=`...), text)
	unix.Write(2, append(b, l.fields...))
}
