package program_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	. "github.com/berth-runtime/berth/engine/program"
)

// The handler is at its place in the image, and tells which signal it was.
func TestEndBySignal(t *testing.T) {
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGHUP} {
		r, w := pipe(t)
		b := NewBuilder()
		for _, s := range []unix.Signal{unix.SIGTERM, unix.SIGHUP} {
			b.EndBySignal(s)
		}
		print(b, ".")
		b.Call(unix.SYS_READ, Int(firstFD), b.Zeroed(8).Arg(), Int(1))
		c := start(t, build(t, b), startOptions{extraFiles: []*os.File{r}})
		if _, err := c.stdout.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if err := c.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if got := c.status(); got != 128+int(signal) {
			t.Errorf("%s: exit status %d", unix.SignalName(signal), got)
		}
		w.Close()
	}
}
