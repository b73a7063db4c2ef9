package inotify

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// What the kernel writes comes back: names of all lengths of padding, several events in a read.
func TestEvents(t *testing.T) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	dir := t.TempDir()
	names := []string{"a", "fifteen-letters", "sixteen--letters", "and a name that is longer than that"}
	watch, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	var want []Event
	for _, name := range names {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		want = append(want, Event{int32(watch), unix.IN_CREATE | unix.IN_ISDIR, name})
	}
	alone, err := unix.InotifyAddWatch(fd, filepath.Join(dir, "a"), unix.IN_DELETE_SELF)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	want = append(want, Event{int32(alone), unix.IN_DELETE_SELF, ""}, Event{int32(alone), unix.IN_IGNORED, ""})
	buf := make([]byte, 4096)
	n, err := unix.Read(fd, buf)
	if err != nil {
		t.Fatal(err)
	}
	if got := Events(buf[:n]); !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	// One that is cut off is not taken, nor is anything after it.
	if got := Events(buf[:n-1]); len(got) != len(want)-1 {
		t.Errorf("%d events without the last byte", len(got))
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00abc\x00"))
	f.Fuzz(func(t *testing.T, buf []byte) {
		if len(Events(buf))*unix.SizeofInotifyEvent > len(buf) {
			t.Error("more events than bytes")
		}
	})
}
