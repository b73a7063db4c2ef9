package reliability

import (
	"os"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// checkpointed is a worker whose container criu can write down and bring back.
func checkpointed(t *testing.T, criu string) *worker {
	w := newWorker(t, "/bin/sleep", "100000")
	t.Cleanup(w.b.ReapOrphans) // what a killed criu has forked comes to this process
	w.b.Globals = append(w.b.Globals, "--criu", criu)
	w.c.Spec.Root.Readonly = true // on an image that others use too, nothing may have changed since
	return w
}

// freshImages gives a checkpoint a directory of images of its own.
func freshImages(w *worker) {
	if err := os.RemoveAll(w.b.Path("images")); err != nil {
		w.b.T.Fatal(err)
	}
}

// What criu has begun it ends by itself, or gives up, when nobody hears it any more: the container
// runs on as if nothing had been, or has ended, and goes away as any other.
func TestKilledCheckpoint(t *testing.T) {
	criu := harness.NeedCriu(t)
	for name, flags := range map[string][]string{"and left running": {"--leave-running"}, "and ended": nil} {
		t.Run(name, func(t *testing.T) {
			c := crash{verb: "checkpoint", flags: flags, of: func(w *worker) []string { return []string{"--image-path", w.b.Path("images")} }}
			c.prepare = func(w *worker) {
				freshImages(w)
				w.c.RunDetached()
			}
			c.recover = func(t *testing.T, w *worker, run int, about string) {
				byForce(t, w, run, about)
				w.ended(t)
			}
			c.each(t, func() *worker { return checkpointed(t, criu) })
		})
	}
}
