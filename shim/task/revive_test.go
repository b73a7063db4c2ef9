package task

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// A shim is killed while it starts an exec, and so is its client, which asks for that no more: the
// ends of the exec, if it ran, and of the container are told of all the same.
func TestStartThatNoOneGoesOnWith(t *testing.T) {
	const pid = 1 << 22 // which no process has
	for name, c := range map[string]struct {
		exec *wire.HandoverProcess
		want []string
	}{
		"not made":          {&wire.HandoverProcess{}, []string{"exit c 137"}},
		"made, and gone":    {&wire.HandoverProcess{Pid: pid}, []string{"exit c 137"}},
		"made, and reaped":  {&wire.HandoverProcess{Pid: pid, Ended: true, Status: 4}, []string{"exec-started e", "exit e 4", "exit c 137"}},
		"known, and reaped": {&wire.HandoverProcess{Pid: pid, Child: true, Ended: true, Status: 5}, []string{"exec-started e", "exit e 5", "exit c 137"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.engine.script = "exec sleep 1000"
			w.must(w.make("c"))
			w.must(w.begin("c", ""))
			w.must(w.add("c", "e", "exit 4"))
			h := w.Handover(fds.New())
			for _, p := range h.Containers[0].Processes {
				if p.ExecID == "e" {
					c.exec.ExecID, c.exec.Spec, c.exec.State = "e", p.Spec, uint32(starting)
					*p = *c.exec
				}
			}
			w.reviveAndKill(h)
			w.events(c.want...)
		})
	}
}

// The same with the start of a container that runs.
func TestStartOfInitThatNoOneGoesOnWith(t *testing.T) {
	w := newWorld(t)
	w.engine.script = "exec sleep 1000"
	w.must(w.make("c"))
	w.must(w.begin("c", ""))
	h := w.Handover(fds.New())
	h.Containers[0].Processes[0].State = uint32(starting)
	w.reviveAndKill(h)
	w.events("start", "exit c 137")
}

// reviveAndKill has another service go on with the containers, as in a shim that comes after a
// killed one, and kills the container c there. Events are seen from then on.
func (w *world) reviveAndKill(h *wire.HandoverTasks) {
	w.t.Helper()
	w.seen = nil
	next, err := TakeOver(w.Config, h, fds.New())
	w.must(err)
	w.Service = next
	next.Resume()
	next.Revive()
	w.must(unix.Kill(next.containers["c"].init.pid, unix.SIGKILL))
	w.waitFor("c", "")
}
