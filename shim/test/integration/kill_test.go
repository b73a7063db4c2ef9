package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/test/wait"
)

// An orphan in the container's pid namespace, and one in the host's, must not
// outlive the container's init, nor stay zombies.
func TestOrphans(t *testing.T) {
	withSetups(t, func(t *testing.T, d *daemon, engine string) {
		for name, c := range map[string]change{
			"own pid namespace":    func(*specs.Spec) {},
			"host's pid namespace": func(s *specs.Spec) { s.Linux.Namespaces = s.Linux.Namespaces[1:] },
		} {
			mark := fmt.Sprint(4000 + sequence.Add(1))
			b := d.run(engine, sh("sleep "+mark+" & sleep "+mark+" & exit 0"), c)
			if got := b.wait(""); got != 0 {
				t.Errorf("%s: status %d", name, got)
			}
			wait.Until(t, name+": nothing is left of it", func() bool { return !anyProcess("sleep\x00" + mark + "\x00") })
			b.remove()
		}
	})
}

func anyProcess(cmdline string) bool {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")); err == nil && string(text) == cmdline {
			return true
		}
	}
	return false
}

// A task that is deleted without having been started.
func TestDeleteCreated(t *testing.T) {
	withSetups(t, func(t *testing.T, d *daemon, engine string) {
		b := d.define(engine)
		if err := b.create(stdio{}); err != nil {
			t.Fatal(err)
		}
		if got := b.status(); got != "CREATED" {
			t.Errorf("status %s", got)
		}
		if _, err := d.tasks().Delete(d.Context(), &tasks.DeleteTaskRequest{ContainerID: b.id}); err != nil {
			t.Error(err)
		}
		b.undefine()

		b = d.define(engine)
		if err := b.create(stdio{}); err != nil {
			t.Fatal(err)
		}
		if err := b.kill(9); err != nil {
			t.Error(err)
		}
		if got := b.wait(""); got != 137 {
			t.Errorf("killed before its start: status %d", got)
		}
		b.remove()
	})
}

func TestShimIsBelowContainerdForOOM(t *testing.T) {
	withReleases(t, testShimIsBelowContainerdForOOM)
}

func testShimIsBelowContainerdForOOM(t *testing.T, d *daemon) {
	b := d.run("")
	defer b.remove()
	for _, pid := range d.Shims() {
		ours, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", d.Process.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		var o, c int
		fmt.Sscan(string(ours), &o)
		fmt.Sscan(string(theirs), &c)
		if o != min(c+1, 1000) {
			t.Errorf("score %d, containerd's is %d", o, c)
		}
	}
}

// A signal goes to the first process alone, or to all that the container has.
func TestKillAll(t *testing.T) {
	withSetups(t, func(t *testing.T, d *daemon, engine string) {
		b := d.runTwo(engine)
		defer b.remove()
		kill := func(signal uint32, all bool) {
			t.Helper()
			if _, err := d.tasks().Kill(d.Context(), &tasks.KillRequest{ContainerID: b.id, Signal: signal, All: all}); err != nil {
				t.Fatal(err)
			}
		}
		kill(1, false) // SIGHUP, which an init that does not handle it ignores
		if r, err := d.tasks().Get(d.Context(), &tasks.GetRequest{ContainerID: b.id, ExecID: "e"}); err != nil || r.Process.Status.String() != "RUNNING" {
			t.Errorf("after a signal to the init the exec is %v, %v", r, err)
		}
		kill(1, true)
		if got := b.wait("e"); got != 129 {
			t.Errorf("after a signal to all the exec ended with %d", got)
		}
		if got := b.status(); got != "RUNNING" {
			t.Errorf("the container is %s", got)
		}
		if _, err := b.deleteExec("e"); err != nil {
			t.Error(err)
		}
	})
}
