package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Between the look at an entry and its opening another one is put there: the copy has owner
// and mode of what it is a copy of.
func TestEntryIsExchangedWhileItIsCopied(t *testing.T) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	from, to := t.TempDir(), t.TempDir()
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
		if err := (&copier{left: 1 << 20}).copyEntry(openDir(t, from), openDir(t, to), name, "/"+name, &st); !errors.Is(err, test.err) {
			t.Errorf("%s: %v, want %v", name, err, test.err)
			continue
		}
		if err := unix.Lstat(filepath.Join(to, name), &st); test.err == nil && (err != nil || st.Mode != test.mode) {
			t.Errorf("%s: %v, mode %o, want %o", name, err, st.Mode, test.mode)
		}
	}
}

// sparse makes a file of the given size with some bytes at the given places, and looks how much of
// it is there.
func sparse(t *testing.T, name string, size int64, at ...int64) int64 {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Skip("no large files here: ", err)
	}
	for _, place := range at {
		if _, err := f.WriteAt([]byte("data"), place); err != nil {
			t.Fatal(err)
		}
	}
	return allocated(t, name)
}

func allocated(t *testing.T, name string) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

func openDir(t *testing.T, dir string) int {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestHolesStayHoles(t *testing.T) {
	const size = 64 << 30
	for name, at := range map[string][]int64{
		"nothing": nil, "beginning": {0}, "middle": {1 << 30, 7 << 30}, "end": {size - 4}, "all about": {0, 5000, 1 << 20, 3 << 30, size - 4},
	} {
		from, to := t.TempDir(), t.TempDir()
		if sparse(t, filepath.Join(from, "file"), size, at...) > 1<<20 {
			t.Skip("this file system makes no holes")
		}
		// What is data takes memory, what is a hole takes none.
		if err := CopyTree(openDir(t, from), openDir(t, to), 1<<20); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		copied := filepath.Join(to, "file")
		if n := allocated(t, copied); n > 1<<20 {
			t.Errorf("%s: the copy takes %d bytes", name, n)
		}
		f, err := os.Open(copied)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || info.Size() != size {
			t.Errorf("%s: the copy has %d bytes, %v", name, info.Size(), err)
		}
		for _, place := range at {
			var text [4]byte
			if _, err := f.ReadAt(text[:], place); err != nil || string(text[:]) != "data" {
				t.Errorf("%s: at %d there is %q, %v", name, place, text, err)
			}
		}
	}
}

// A tree is copied into memory, of which it may be given only so much.
func TestCopyOfTooMuch(t *testing.T) {
	page := int64(os.Getpagesize())
	for name, test := range map[string]struct {
		fill func(dir string) error
		most int64
		err  error
	}{
		"fits":        {func(dir string) error { return os.WriteFile(dir+"/f", make([]byte, 2*page), 0o600) }, 2*page + 1024, nil},
		"a byte more": {func(dir string) error { return os.WriteFile(dir+"/f", make([]byte, 2*page+1), 0o600) }, 2*page + 1024, ErrTooLarge},
		"many files": {func(dir string) error {
			for i := range 1100 {
				if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
					return err
				}
			}
			return nil
		}, 1099 << 10, ErrTooLarge},
		"many files that fit": {func(dir string) error {
			for i := range 1100 {
				if err := os.Mkdir(filepath.Join(dir, strconv.Itoa(i)), 0o700); err != nil {
					return err
				}
			}
			return nil
		}, 1100 << 10, nil},
		"names of one file": {func(dir string) error {
			if err := os.WriteFile(dir+"/0", make([]byte, 1<<20), 0o600); err != nil {
				return err
			}
			for i := range 16 {
				if err := os.Link(dir+"/0", filepath.Join(dir, strconv.Itoa(i+1))); err != nil {
					return err
				}
			}
			return nil
		}, 8 << 20, ErrTooLarge},
		"no limit": {func(dir string) error { return os.WriteFile(dir+"/f", make([]byte, 1<<20), 0o600) }, 0, nil},
		"deeper than any path": {func(dir string) error {
			at := openDir(t, dir)
			name := strings.Repeat("d", 250)
			for range 20 {
				if err := unix.Mkdirat(at, name, 0o700); err != nil {
					return err
				}
				below, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
				if err != nil {
					return err
				}
				t.Cleanup(func() { unix.Close(below) })
				at = below
			}
			return nil
		}, 0, unix.ENAMETOOLONG},
	} {
		from, to := t.TempDir(), t.TempDir()
		if err := test.fill(from); err != nil {
			t.Fatal(err)
		}
		if err := CopyTree(openDir(t, from), openDir(t, to), test.most); !errors.Is(err, test.err) {
			t.Errorf("%s: %v, want %v", name, err, test.err)
		}
	}
}
