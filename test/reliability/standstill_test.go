package reliability

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// Where systemd would cut a container off from its devices for an instant, it stands still while
// its unit's limits are changed (cgroup v1). When the update is killed then, the next command lets
// it go on, whichever that is.
func TestKilledUpdateOfAUnit(t *testing.T) {
	harness.Controller(t, "pids")
	harness.Controller(t, "devices") // only version 1 has such a one
	c := crash{verb: "update", flags: []string{"--pids-limit", "30"}}
	var stood atomic.Int64
	c.recover = func(t *testing.T, w *worker, run int, about string) {
		mark := filepath.Join(w.b.Root, w.c.ID, "standstill")
		if _, err := os.Stat(mark); err == nil {
			stood.Add(1)
		}
		switch run % 5 {
		case 0:
			w.c.Exec(nil, "/bin/true").OK(t)
		case 1:
			w.b.Berth("gc").OK(t)
		case 2:
			w.c.Command("pause", nil).Run().OK(t)
			w.c.Command("resume", nil).Run().OK(t)
		case 3:
			again(t, w, &c, about)
		}
		if s := w.c.State(); s.Status != "running" {
			t.Errorf("%s: it is %s", about, s.Status)
		}
		w.c.Exec(nil, "/bin/sh", "-c", "echo > /dev/null").OK(t)
		again(t, w, &c, about)
		if _, err := os.Stat(mark); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %s: %v", about, mark, err)
		}
	}
	c.each(t, func() *worker {
		w := newWorker(t, "/inside", "hang")
		_, bus := harness.NewStandIn(t, w.b)
		w.c.Env = append(w.c.Env, bus)
		w.b.Globals = append(w.b.Globals, "--systemd-cgroup")
		limit := int64(50)
		w.c.Spec.Linux.CgroupsPath = ""
		w.c.Spec.Linux.Resources = &specs.LinuxResources{
			Pids: &specs.LinuxPids{Limit: &limit}, Devices: []specs.LinuxDeviceCgroup{{Access: "rwm"}},
		}
		w.c.RunDetached()
		t.Cleanup(func() { // as long as there is a bus
			w.c.Delete("--force")
			w.c.WaitExit()
		})
		w.kept = append(w.kept, w.c.ID)
		w.mounts = mountinfo(t)
		return w
	})
	if stood.Load() == 0 {
		t.Error("it was never killed while the container stood still")
	}
}
