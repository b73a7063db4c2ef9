package task

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// A client sets the size of an exec's terminal, and closes its input, at any time while it is
// started, as kubectl and ctr do: build/scripts/race looks whether the start is in their way.
func TestExecIsStartedAmidOtherCalls(t *testing.T) {
	w := newWorld(t)
	w.engine.script = "exec sleep 1000"
	w.must(w.make("c"))
	w.must(w.begin("c", ""))
	in := filepath.Join(t.TempDir(), "in")
	w.must(unix.Mkfifo(in, 0o600))
	for i := range 20 {
		id := fmt.Sprint("e", i)
		w.must(call(w, w.exec, &wire.ExecProcessRequest{ID: "c", ExecID: id, Terminal: true, Stdin: in, Spec: &wire.Any{Value: []byte("exit 3")}}))
		var clients sync.WaitGroup
		started := make(chan struct{})
		for name, ask := range map[string]func() error{
			"resize": func() error {
				return call(w, w.resizePty, &wire.ResizePtyRequest{ID: "c", ExecID: id, Width: 80, Height: 25})
			},
			"close the input of": func() error {
				return call(w, w.closeIO, &wire.CloseIORequest{ID: "c", ExecID: id, Stdin: true})
			},
		} {
			clients.Add(1)
			go func() {
				defer clients.Done()
				for over := false; !over; {
					select {
					case <-started:
						over = true // and once more
					default:
					}
					if err := ask(); err != nil {
						t.Errorf("%s %s: %v", name, id, err)
						return
					}
				}
			}()
		}
		err := w.begin("c", id)
		close(started)
		clients.Wait()
		w.must(err)
		if got := w.waitFor("c", id); got != 3 {
			t.Errorf("status %d", got)
		}
		w.must(w.drop("c", id))
	}
	w.must(unix.Kill(w.containers["c"].init.pid, unix.SIGKILL))
	w.waitFor("c", "")
	w.must(w.drop("c", ""))
}
