package terminal

import (
	"bytes"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Width is how many characters a line of the terminal holds, 0 for no terminal.
func Width(fd int) int {
	size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	switch {
	case err != nil:
		return 0
	case size.Col == 0:
		return 80 // a serial line knows no size
	}
	return int(size.Col)
}

// Lines is where the lines of a table go: on a terminal each is cut to its width, as a
// table is not to be read once its lines wrap. Elsewhere they stay as they are. A line is
// written once its end is, by one system call: tabwriter passes on each word by itself.
func Lines(out *os.File) io.Writer { return &lines{out: out, width: Width(int(out.Fd()))} }

type lines struct {
	out   io.Writer
	width int    // 0 for lines of any length
	begun []byte // of a line whose end is still to come
}

func (l *lines) Write(text []byte) (int, error) {
	var cut []byte
	l.begun = append(l.begun, text...)
	for {
		line, rest, whole := bytes.Cut(l.begun, []byte("\n"))
		if !whole {
			break
		}
		if l.width > 0 && utf8.RuneCount(line) > l.width {
			line = append(first(line, l.width-1), "…"...)
		}
		cut = append(append(cut, line...), '\n')
		l.begun = rest
	}
	if len(cut) > 0 {
		if _, err := l.out.Write(cut); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

// first is a copy of the first n characters.
func first(text []byte, n int) []byte {
	at := 0
	for range n {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return bytes.Clone(text[:at])
}
