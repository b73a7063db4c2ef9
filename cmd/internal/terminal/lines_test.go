package terminal

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestLinesAreCut(t *testing.T) {
	for _, test := range []struct {
		width      int
		text, want string
	}{
		{5, "12345\n", "12345\n"},
		{5, "123456\nab\n", "1234…\nab\n"},
		{5, "äöüßéè\n", "äöüß…\n"},
		{1, "ab\n\n", "…\n\n"},
	} {
		var out bytes.Buffer
		l := &lines{out: &out, width: test.width}
		for i := range len(test.text) { // in pieces, as text/tabwriter writes
			if n, err := l.Write([]byte(test.text[i : i+1])); n != 1 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}
		if out.String() != test.want {
			t.Errorf("%q in %d: %q, not %q", test.text, test.width, out.String(), test.want)
		}
	}
}

func TestLinesOfAFileStayWhole(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	long := strings.Repeat("long ", 1000) + "\n"
	if _, err := Lines(f).Write([]byte(long)); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(f.Name()); err != nil || string(got) != long {
		t.Errorf("%d bytes of %d, %v", len(got), len(long), err)
	}
}

// calls counts what would be system calls.
type calls int

func (c *calls) Write(text []byte) (int, error) { *c++; return len(text), nil }

func TestLinesAreWrittenWhole(t *testing.T) {
	var made calls
	l := &lines{out: &made}
	for _, piece := range []string{"ID", "  ", "PID", "\n", "", "a", "  ", "1", "\n"} {
		if _, err := l.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if made != 2 {
		t.Errorf("two lines took %d writes", made)
	}
}

// screen keeps what is written, and tells when there is something.
type screen struct {
	sync.Mutex
	text    strings.Builder
	written chan struct{}
}

func (s *screen) Write(text []byte) (int, error) {
	s.Lock()
	defer s.Unlock()
	select {
	case s.written <- struct{}{}:
	default:
	}
	return s.text.Write(text)
}

func TestProgress(t *testing.T) {
	s := &screen{written: make(chan struct{}, 1)}
	p := show(s, 20, 0, func() string { return "a text that is too long for it" })
	<-s.written
	p.End()
	text := s.text.String()
	if !strings.HasPrefix(text, "\ra text that is too \x1b[K") || !strings.HasSuffix(text, "\r\x1b[K") || strings.Contains(text, "\n") {
		t.Errorf("%q", text)
	}
}

// What ends before it is drawn leaves no trace, and none is drawn in a pipe.
func TestProgressOfWhatIsQuick(t *testing.T) {
	s := &screen{written: make(chan struct{}, 1)}
	show(s, 20, progressAfter*1000, func() string { return "never" }).End()
	if text := s.text.String(); text != "" {
		t.Errorf("%q", text)
	}
	(*Progress)(nil).End()
}
