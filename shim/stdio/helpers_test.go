package stdio

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/berth-runtime/berth/shim/reaper"
	"golang.org/x/sys/unix"
)

var startReaper = sync.OnceValues(reaper.Start)

func theReaper(t *testing.T) *reaper.Reaper {
	t.Helper()
	r, err := startReaper()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// open opens stdio and checks at the end that every descriptor is closed again.
func open(t *testing.T, c Config) (*IO, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return Open(ctx, c, theReaper(t), func(s string) { t.Log(s) })
}

func mustOpen(t *testing.T, c Config) *IO {
	t.Helper()
	s, err := open(t, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// run starts a shell script with the streams of s, as an engine would.
func run(t *testing.T, s *IO, script string) *reaper.Child {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var files []uintptr
	for _, f := range []*os.File{s.Child().In, s.Child().Out, s.Child().Err} {
		if f == nil {
			f = null
		}
		files = append(files, f.Fd())
	}
	c, err := theReaper(t).Start("/bin/sh", []string{"sh", "-c", script}, &syscall.ProcAttr{Env: os.Environ(), Files: files}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Started(nil)
	return c
}

func fifo(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// reader reads a FIFO to its end.
func reader(t *testing.T, path string) <-chan string {
	t.Helper()
	got := make(chan string, 1)
	go func() {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		got <- string(b)
	}()
	return got
}
