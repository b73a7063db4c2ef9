package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Between the look at an entry and its opening somebody puts another one there: the copy has owner and mode of what it is a copy of.
func TestEntryIsExchangedWhileItIsCopied(t *testing.T) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	from, to := t.TempDir(), t.TempDir()
	open := func(dir string) int {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		check(err)
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	file := func(mode uint32) func(string) {
		return func(name string) {
			check(os.WriteFile(name, []byte("text"), 0o600))
			check(unix.Chmod(name, mode))
		}
	}
	dir := func(mode uint32) func(string) {
		return func(name string) {
			check(os.Mkdir(name, 0o700))
			check(unix.Chmod(name, mode))
		}
	}
	for name, test := range map[string]struct {
		before, after func(string)
		mode          uint32
		err           error
	}{
		"program": {file(0o4755), file(0o644), unix.S_IFREG | 0o644, nil},
		"folder":  {dir(0o2777), dir(0o700), unix.S_IFDIR | 0o700, nil},
		"fifo":    {file(0o644), func(name string) { check(unix.Mkfifo(name, 0o666)) }, 0, ErrNotRegular},
	} {
		test.before(filepath.Join(from, name))
		var st unix.Stat_t
		check(unix.Lstat(filepath.Join(from, name), &st))
		check(os.Remove(filepath.Join(from, name)))
		test.after(filepath.Join(from, name))
		if err := (copier{}).copyEntry(open(from), open(to), name, "/"+name, &st); !errors.Is(err, test.err) {
			t.Errorf("%s: %v, want %v", name, err, test.err)
			continue
		}
		if err := unix.Lstat(filepath.Join(to, name), &st); test.err == nil && (err != nil || st.Mode != test.mode) {
			t.Errorf("%s: %v, mode %o, want %o", name, err, st.Mode, test.mode)
		}
	}
}
