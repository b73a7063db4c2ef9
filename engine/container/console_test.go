package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What the init hands over was opened by a name in a root of strangers.
func TestOnlyMastersAreDelivered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"/dev/ptmx": true, "/dev/null": false, file: false, filepath.Dir(file): false} {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil && name == "/dev/ptmx" {
			t.Skip("needs a pseudo-terminal: ", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		delivered := false
		o := &IO{Console: func(master *os.File) error {
			delivered = true
			return master.Close()
		}}
		err = o.deliverConsole(fd)
		unix.Close(fd)
		if delivered != want || want != (err == nil) || err != nil && !strings.Contains(err.Error(), "/dev/pts/ptmx") {
			t.Errorf("%s: delivered %v, %v", name, delivered, err)
		}
	}
}
