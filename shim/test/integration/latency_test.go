package integration

import (
	"os/exec"
	"testing"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"

	"github.com/berth-runtime/berth/test/containerd"
)

// BenchmarkCreateToDelete is a whole life through containerd, for each shim and
// engine. Compare them by turns: -count=5.
func BenchmarkCreateToDelete(b *testing.B) {
	for _, bc := range []struct{ name, shim, engine string }{
		{"berth shim, linked engine", "", ""},
		{"berth shim, runc", "", "runc"},
		{"runc shim, runc", "containerd-shim-runc-v2", "runc"},
	} {
		b.Run(bc.name, func(b *testing.B) {
			d := newDaemon(b, containerd.Old(b))
			if bc.shim != "" {
				path, err := exec.LookPath(bc.shim)
				if err != nil {
					b.Skipf("%s is not installed", bc.shim)
				}
				d.Shim = path
			}
			for b.Loop() {
				b.StopTimer() // containerd's own database
				c := d.define(bc.engine, args("true"))
				b.StartTimer()
				if err := c.create(stdio{}); err != nil {
					b.Fatal(err)
				}
				if err := c.start(); err != nil {
					b.Fatal(err)
				}
				c.wait("")
				if _, err := d.tasks().Delete(d.Context(), &tasks.DeleteTaskRequest{ContainerID: c.id}); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				c.undefine()
				b.StartTimer()
			}
		})
	}
}
