package harness

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A Stream is the reading end of what a container or the engine says: a pipe, or the master of a
// terminal.
type Stream struct {
	t    testing.TB
	file *os.File
	seen strings.Builder // all that was read
	rest string          // what Line and Until have not given yet
}

// Pipe makes a pipe: give the writing end to a command and close it (Container.Create and the like
// don't).
func (b *Box) Pipe() (*Stream, *os.File) {
	b.T.Helper()
	r, w, err := os.Pipe()
	b.must(err)
	s := &Stream{t: b.T, file: r}
	b.T.Cleanup(func() { r.Close(); w.Close() })
	return s, w
}

// more reads what there is, waiting for something; false at the end.
func (s *Stream) more() bool {
	s.t.Helper()
	if err := s.file.SetReadDeadline(time.Now().Add(Deadline)); err != nil {
		s.t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := s.file.Read(buf)
	s.seen.Write(buf[:n])
	s.rest += string(buf[:n])
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.t.Fatalf("nothing more came within %s after %q", Deadline, s.seen.String())
	}
	// EIO is how the master of a terminal says that the last slave was closed.
	if err != nil && n == 0 && !errors.Is(err, unix.EIO) && !errors.Is(err, io.EOF) {
		s.t.Fatal(err)
	}
	return n > 0
}

// Until reads until the words have come, and returns what came up to their end.
func (s *Stream) Until(words string) string {
	s.t.Helper()
	for {
		if i := strings.Index(s.rest, words); i >= 0 {
			text := s.rest[:i+len(words)]
			s.rest = s.rest[i+len(words):]
			return text
		}
		if !s.more() {
			s.t.Fatalf("the stream ended before %q came: %q", words, s.seen.String())
		}
	}
}

// Line reads a line, and returns it without its end.
func (s *Stream) Line() string {
	s.t.Helper()
	return strings.TrimRight(s.Until("\n"), "\r\n")
}

// All reads to the end.
func (s *Stream) All() string {
	s.t.Helper()
	for s.more() {
	}
	text := s.rest
	s.rest = ""
	return text
}

// Write writes to the other side, of a terminal.
func (s *Stream) Write(text string) {
	s.t.Helper()
	if _, err := s.file.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// Held is a standard input that stays open, and empty, until its other end is closed.
func (b *Box) Held() (stdin, hold *os.File) {
	b.T.Helper()
	r, w, err := os.Pipe()
	b.must(err)
	b.T.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}
