package watch

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// In the way of the server's socket may be one that was left by a server that was killed. Anything
// else stays.
func TestListenRemovesOnlyItsSocket(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("file"), []byte("somebody's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(at("file"), at("link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	used, err := net.Listen("unix", at("used"))
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	datagrams, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at("datagrams"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer datagrams.Close()
	for _, name := range []string{"file", "link", "folder", "used", "datagrams"} {
		before, err := os.Lstat(at(name))
		if err != nil {
			t.Fatal(err)
		}
		l, err := listenOn("unix:" + at(name))
		if err == nil {
			l.Close()
			t.Errorf("listens in the place of the %s", name)
		} else if !strings.Contains(err.Error(), at(name)) {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.Lstat(at(name)); err != nil || !os.SameFile(before, after) {
			t.Errorf("the %s is gone: %v", name, err)
		}
	}
	left, err := net.Listen("unix", at("left"))
	if err != nil {
		t.Fatal(err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	left.Close()
	for _, name := range []string{"left", "new"} {
		l, err := listenOn("unix:" + at(name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		l.Close()
	}
}

// What can't be read, and goes on so, is told now and then, and takes no processor.
func TestFilesThatCannotBeRead(t *testing.T) {
	folder, err := os.Open(t.TempDir()) // read(2) of it is EISDIR
	if err != nil {
		t.Fatal(err)
	}
	f := &files{events: make(chan written), done: make(chan struct{}), file: folder, fan: true}
	ended := make(chan struct{})
	go func() { f.read(); close(ended) }()
	told := 0
	for limit := time.After(500 * time.Millisecond); ; {
		select {
		case <-f.events:
			told++
			continue
		case <-limit:
		}
		break
	}
	if told == 0 || told > 2 {
		t.Errorf("told %d times in half a second", told)
	}
	f.close()
	<-ended
}
