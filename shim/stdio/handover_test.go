package stdio

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/fds"
)

// Not a byte is lost or doubled when copies are stopped anywhere, also where the client does not
// read at the time.
func TestSuspendLosesNoByte(t *testing.T) {
	dir := t.TempDir()
	out, in := filepath.Join(dir, "out"), filepath.Join(dir, "in")
	for _, path := range []string{out, in} {
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := os.OpenFile(out, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	writer, err := os.OpenFile(in, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	s := mustOpen(t, Config{Stdin: in, Stdout: out})
	child := run(t, s, "cat")
	var text strings.Builder
	for i := range 50000 {
		text.WriteString(strconv.Itoa(i) + "\n")
	}
	go io.WriteString(writer, text.String())
	got := make(chan string, 1)
	go func() {
		b := make([]byte, text.Len())
		for at := 0; at < len(b); {
			n, err := reader.Read(b[at:min(at+9000, len(b))])
			if err != nil {
				break
			}
			if at += n; at%5 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		got <- string(b)
	}()
	suspended := 0
	for whole := ""; whole == ""; suspended++ {
		if err := s.Suspend(time.Minute); err != nil {
			t.Fatal(err)
		}
		s.Resume()
		time.Sleep(time.Millisecond) // or it would get nowhere
		select {
		case whole = <-got:
			if whole != text.String() {
				t.Error("what comes out is not what went in")
			}
		default:
		}
	}
	t.Logf("suspended %d times", suspended)
	child.Signal(unix.SIGKILL)
	child.Wait()
	s.Drain()
}

// What an exec that could not be started was to have is closed, and handed on as that: its process
// may not have been there at all.
func TestClosedIsHandedOn(t *testing.T) {
	out := fifo(t, "out")
	reader(t, out)
	s := mustOpen(t, Config{Stdout: out})
	s.Close()
	if err := s.Suspend(time.Minute); err != nil {
		t.Fatal(err)
	}
	h := s.Handover(fds.New())
	next, err := TakeOver(h, s.config, fds.New(), theReaper(t), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	next.Resume()
	next.Drain()
	next.Close()
}
