package atomicfile

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

type writer func(dir int, path string, data []byte, mode uint32) error

// each runs a test with both writers, in a directory of its own: by its path, and relative to a
// descriptor.
func each(t *testing.T, test func(t *testing.T, top string, write func(name, text string) error)) {
	for kind, write := range map[string]writer{"left to the kernel": Write, "synced": WriteSynced} {
		t.Run(kind, func(t *testing.T) {
			top := t.TempDir()
			test(t, top, func(name, text string) error {
				return write(unix.AT_FDCWD, filepath.Join(top, name), []byte(text), 0o640)
			})
		})
		t.Run(kind+", in an open directory", func(t *testing.T) {
			top := t.TempDir()
			dir, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(dir)
			test(t, top, func(name, text string) error { return write(dir, name, []byte(text), 0o640) })
		})
	}
}

// has compares what there is in a directory, by names, with what there should be.
func has(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, want) {
		t.Errorf("%s has %q, want %q", dir, names, want)
	}
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	if text, err := os.ReadFile(path); err != nil || string(text) != want {
		t.Errorf("%s: %q, %v; want %q", path, text, err, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWrite(t *testing.T) {
	defer unix.Umask(unix.Umask(0))
	each(t, func(t *testing.T, top string, write func(name, text string) error) {
		must(t, write("a", "one"))
		before, err := os.Open(filepath.Join(top, "a"))
		must(t, err)
		defer before.Close()
		if info, err := before.Stat(); err != nil || info.Mode() != 0o640 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		must(t, write("a", "another"))
		holds(t, filepath.Join(top, "a"), "another")
		// Who has the old one open reads that to its end.
		text := make([]byte, 10)
		if n, _ := before.Read(text); string(text[:n]) != "one" {
			t.Errorf("the old file holds %q now", text[:n])
		}
		must(t, os.Mkdir(filepath.Join(top, "sub"), 0o700))
		must(t, write("sub/b", ""))
		holds(t, filepath.Join(top, "sub/b"), "")
		has(t, filepath.Join(top, "sub"), "b")
		has(t, top, "a", "sub")
	})
}

// What is there of the temporary name is left by a kill, or was put there by others: it is neither
// written to nor followed.
func TestTemporaryIsTaken(t *testing.T) {
	each(t, func(t *testing.T, top string, write func(name, text string) error) {
		path, other := filepath.Join(top, "a"), filepath.Join(t.TempDir(), "other")
		must(t, os.WriteFile(other, []byte("kept"), 0o600))
		for _, put := range []func() error{
			func() error { return os.WriteFile(Temporary(path), []byte("half of a longer one"), 0o600) },
			func() error { return os.Symlink(other, Temporary(path)) },
			func() error { return os.Link(other, Temporary(path)) },
		} {
			must(t, put())
			must(t, write("a", "whole"))
			holds(t, path, "whole")
			holds(t, other, "kept")
			has(t, top, "a")
		}
		// A link of the file's own name is replaced, too.
		must(t, os.Remove(path))
		must(t, os.Symlink(other, path))
		must(t, write("a", "whole"))
		holds(t, path, "whole")
		holds(t, other, "kept")
		has(t, top, "a")
	})
}

// A write that fails leaves what was there, and nothing else.
func TestFailedWriteLeavesNothing(t *testing.T) {
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	each(t, func(t *testing.T, top string, write func(name, text string) error) {
		must(t, write("a", "old"))
		must(t, os.MkdirAll(filepath.Join(top, "taken", "full"), 0o700))
		check := func(name string, err, want error) {
			t.Helper()
			if !errors.Is(err, want) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
			has(t, top, "a", "taken")
			has(t, filepath.Join(top, "taken"), "full")
			holds(t, filepath.Join(top, "a"), "old")
		}
		check("taken", write("taken", "text"), unix.EISDIR)
		check("taken/full", write("taken/full", "text"), unix.EISDIR)
		check("none/b", write("none/b", "text"), unix.ENOENT)
		check("a/b", write("a/b", "text"), unix.ENOTDIR)
		// As on a full disk: a part is written. The limit is on for the write alone, since go test
		// writes down what the test looks at.
		var limit unix.Rlimit
		must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &limit))
		for _, name := range []string{"a", "b"} {
			must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4, Max: limit.Max}))
			err := write(name, "longer than that")
			must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
			check(name, err, unix.EFBIG)
		}
	})
}
