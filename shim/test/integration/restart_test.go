package integration

import (
	"fmt"
	"os"
	"testing"

	containers "github.com/containerd/containerd/api/services/containers/v1"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/containerd"
)

func TestContainerdRestarts(t *testing.T) {
	withSetups(t, func(t *testing.T, d *daemon, engine string) {
		survive(t, d, engine, d.Stop)
	})
}

func TestContainerdCrashes(t *testing.T) {
	withReleases(t, func(t *testing.T, d *daemon) { survive(t, d, "", d.Kill) })
}

// Containers that were started under one release are managed by the other, and
// also by the older one again, should the newer one be taken back.
func TestContainerdIsUpgraded(t *testing.T) {
	for _, tc := range []struct {
		name     string
		from, to func(testing.TB) containerd.Release
	}{
		{"1.6 to 2", containerd.Old, containerd.Modern},
		{"2 to 1.6", containerd.Modern, containerd.Old},
	} {
		t.Run(tc.name, func(t *testing.T) {
			from, to := tc.from(t), tc.to(t)
			d := newDaemon(t, from)
			survive(t, d, "", func() {
				d.Stop()
				d.Release = to
			})
			// What is made next is made as the new release has it.
			b := d.run("", sh("exit 3"))
			if got := b.wait(""); got != 3 {
				t.Errorf("status %d", got)
			}
			b.remove()
		})
	}
}

// survive runs containers, stops the daemon, lets things happen to them
// meanwhile, starts it again and goes on with them. Their FIFOs must stay alive,
// and each of their events must reach containerd, once and in its order.
func survive(t *testing.T, d *daemon, engine string, stop func()) {
	events := d.tap()
	stays := d.define(engine, sh("echo before; read x; echo after; read y; echo end; exit 7"))
	s := d.pipes(stays.id, false)
	goes := d.define(engine, sh("read x; exit 5"))
	g := d.pipes(goes.id, false)
	waits := d.define(engine, sh("exit 6")) // is created, and started by the next daemon
	for b, io := range map[*box]stdio{stays: s, goes: g, waits: {}} {
		if err := b.create(io); err != nil {
			t.Fatal(err)
		}
		if b == waits {
			continue
		}
		if err := b.start(); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, "first output", func() bool { return s.output[0].String() == "before\n" })
	e := d.pipes("e", false)
	if err := stays.exec("e", e, "sh", "-c", "read x; exit 8"); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the first events have come", func() bool { return len(events.of(stays.id)) == 4 })

	stop()
	events.listen()
	if _, err := s.writer.WriteString("x\n"); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "output while containerd is away", func() bool { return s.output[0].String() == "before\nafter\n" })
	e.writer.WriteString("x\n")
	g.writer.WriteString("x\n")
	wait.Until(t, "the end of a container", func() bool { _, err := os.Stat(fmt.Sprintf("/proc/%d", goes.pid)); return err != nil })
	d.Start()

	if got := goes.wait(""); got != 5 {
		t.Errorf("ended while containerd was away: status %d", got)
	}
	if got := stays.wait("e"); got != 8 {
		t.Errorf("exec that ended while containerd was away: status %d", got)
	}
	if got := stays.status(); got != "RUNNING" {
		t.Errorf("status %s", got)
	}
	if _, err := stays.deleteExec("e"); err != nil {
		t.Error(err)
	}
	if err := waits.start(); err != nil {
		t.Errorf("start of what the daemon before has created: %v", err)
	} else if got := waits.wait(""); got != 6 {
		t.Errorf("status %d", got)
	}
	n := d.pipes("new", false)
	if err := stays.exec("new", n, "echo", "new"); err != nil {
		t.Fatal(err)
	}
	if got := stays.wait("new"); got != 0 {
		t.Errorf("exec after the restart: status %d", got)
	}
	if got := n.output[0].wait(); got != "new\n" {
		t.Errorf("output of an exec after the restart: %q", got)
	}
	if _, err := stays.deleteExec("new"); err != nil {
		t.Error(err)
	}
	s.writer.WriteString("y\n")
	if got := stays.wait(""); got != 7 {
		t.Errorf("status %d", got)
	}
	if got := s.output[0].wait(); got != "before\nafter\nend\n" {
		t.Errorf("output %q", got)
	}
	stays.remove()
	goes.remove()
	waits.remove()
	if r, err := d.containers().List(d.Context(), &containers.ListContainersRequest{}); err != nil || len(r.Containers) != 0 {
		t.Errorf("containers are left: %v, %v", r, err)
	}
	events.want(t, goes.id, "create", "start", "exit "+goes.id+" 5", "delete")
	events.want(t, waits.id, "create", "start", "exit "+waits.id+" 6", "delete")
	events.want(t, stays.id, "create", "start",
		"exec-added e", "exec-started e", "exit e 8", "delete e",
		"exec-added new", "exec-started new", "exit new 0", "delete new",
		"exit "+stays.id+" 7", "delete")
}
