package integration

import (
	"strings"
	"syscall"
	"testing"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"

	"github.com/berth-runtime/berth/internal/test/wait"
)

// What the shim says comes out in containerd's log, also in that of the next one.
func TestLogOfTheShim(t *testing.T) {
	withReleases(t, func(t *testing.T, d *daemon) {
		b := d.run("")
		defer b.remove()
		dumps := func() int {
			return strings.Count(d.Log(), `container \"`+b.id+`\"`) + strings.Count(d.Log(), `container "`+b.id+`" in `)
		}
		for _, what := range []string{"the dump in the log", "the dump in the next daemon's log"} {
			before := dumps()
			for _, shim := range d.Shims() {
				if err := syscall.Kill(shim, syscall.SIGUSR1); err != nil {
					t.Fatal(err)
				}
			}
			wait.Until(t, what, func() bool { return dumps() > before })
			d.Stop()
			// Written to nobody, which must not be the end of the shim.
			for _, shim := range d.Shims() {
				if err := syscall.Kill(shim, syscall.SIGUSR1); err != nil {
					t.Fatal(err)
				}
			}
			d.Start()
			if _, err := d.tasks().Get(d.Context(), &tasks.GetRequest{ContainerID: b.id}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
