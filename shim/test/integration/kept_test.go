package integration

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-runtime/berth/test/containerd"
)

// Shims with keepers take a new program every second and are killed at random between, while their
// containers write, and programs come and go in them. containerd sees nothing of it: no call fails,
// each line comes once and in its order, and so does each event.
func TestKilledLive(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("there are keepers on amd64 alone")
	}
	containerd.Each(t, func(t *testing.T, r containerd.Release) {
		t.Run("container", func(t *testing.T) { killedLive(t, newDaemon(t, r, "BERTH_SHIM_KEEPER=1")) })
		t.Run("namespace", func(t *testing.T) {
			killedLive(t, newDaemon(t, r, "BERTH_SHIM_KEEPER=1", "BERTH_SHIM_GROUPING=namespace"))
		})
	})
}

func killedLive(t *testing.T, d *daemon) {
	var execs atomic.Int64
	beside := func(b *box, done <-chan struct{}) (events []string) {
		for i := 0; ; i++ {
			select {
			case <-done:
				return events
			default:
			}
			id, status := fmt.Sprint("x", i), uint32(i%100)
			s := d.pipes(b.id+id, false)
			if err := b.exec(id, s, "sh", "-c", fmt.Sprintf("echo %s; exit %d", id, status)); err != nil {
				t.Errorf("exec %s of %s: %v", id, b.id, err)
				return events
			}
			if got := b.wait(id); got != status {
				t.Errorf("exec %s of %s ends with %d", id, b.id, got)
			}
			if got := s.output[0].wait(); got != id+"\n" {
				t.Errorf("exec %s of %s writes %q", id, b.id, got)
			}
			if _, err := b.deleteExec(id); err != nil {
				t.Errorf("delete exec %s of %s: %v", id, b.id, err)
			}
			s.writer.Close()
			for _, path := range []string{s.in, s.out, s.err} {
				os.Remove(path)
			}
			events = append(events, "exec-added "+id, "exec-started "+id, fmt.Sprintf("exit %s %d", id, status), "delete "+id)
			execs.Add(1)
		}
	}
	kills, upgrades := 0, 0
	countersLive(t, d, limited(t, "BERTH_SOAK_CONTAINERS", rounds(6, 200)), beside, func() {
		kills, upgrades = d.Disturb(time.Duration(limited(t, "BERTH_SOAK_SECONDS", rounds(6, 600))) * time.Second)
	})
	t.Logf("%d kills, %d upgrades, %d execs between them", kills, upgrades, execs.Load())
}
