package integration

import (
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"

	"github.com/berth-runtime/berth/test/containerd"
)

// After kill -9 of a shim, at whatever moment of a container's life, nothing of
// the container is left. What is left is looked for after each round as well as
// at the end, so that it is known which moment it was.
func TestShimIsKilled(t *testing.T) {
	withSetups(t, func(t *testing.T, d *daemon, engine string) {
		for range rounds(6, 300) {
			b := d.define(engine)
			done := make(chan struct{})
			go func() {
				defer close(done)
				b.live()
			}()
			moment := time.Duration(rand.Intn(120)) * time.Millisecond
			time.Sleep(moment)
			killShims(d)
			<-done
			wait.Until(t, fmt.Sprintf("containerd has cleaned up after a kill at %s", moment), func() bool {
				killShims(d) // which may have come too early, or between a start and its listening
				r, err := d.tasks().List(d.Context(), &tasks.ListTasksRequest{})
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Tasks) == 1 && r.Tasks[0].Status.String() == "STOPPED" {
					d.tasks().Delete(d.Context(), &tasks.DeleteTaskRequest{ContainerID: b.id})
				}
				bundles, _ := filepath.Glob(filepath.Join(d.Dir, "state/io.containerd.runtime.v2.task", containerd.Namespace, "*"))
				return len(r.Tasks) == 0 && len(bundles) == 0
			})
			b.undefine()
			if b.pid == 0 {
				// Where containerd has not connected yet, it calls nobody to clean up.
				d.RemoveDeadSockets()
			}
			for _, left := range slices.Concat(d.Cgroups(), d.Mounts(), d.Sockets()) {
				t.Errorf("container %s killed at %s: left: %s", b.id, moment, left)
			}
			if t.Failed() {
				return
			}
		}
	})
}

// live leads a whole life, as far as its shim lets it.
func (b *box) live() {
	if b.create(stdio{}) != nil || b.start() != nil || b.exec("e", stdio{}, "sleep", "1000") != nil {
		return
	}
	b.kill(9)
	if _, err := b.d.tasks().Wait(b.d.Context(), &tasks.WaitRequest{ContainerID: b.id}); err != nil {
		return
	}
	b.deleteExec("e")
	b.d.tasks().Delete(b.d.Context(), &tasks.DeleteTaskRequest{ContainerID: b.id})
}

func killShims(d *daemon) {
	for _, pid := range d.Shims() {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

const (
	groupAnnotation   = "io.containerd.runc.v2.group"
	sandboxAnnotation = "io.kubernetes.cri.sandbox-id"
)

func TestContainersOfAPodShareAShim(t *testing.T) {
	withSetups(t, func(t *testing.T, d *daemon, engine string) {
		pause := d.define(engine)
		inPod := annotation(sandboxAnnotation, pause.id)
		if err := pause.create(stdio{}); err != nil {
			t.Fatal(err)
		}
		if err := pause.start(); err != nil {
			t.Fatal(err)
		}
		a, b := d.run(engine, inPod), d.run(engine, inPod)
		if n := len(d.Shims()); n != 1 {
			t.Errorf("%d shims, want 1", n)
		}
		// The orderly end of one leaves the others alone.
		a.remove()
		for _, c := range []*box{pause, b} {
			if got := c.status(); got != "RUNNING" {
				t.Errorf("%s is %s", c.id, got)
			}
		}
		b.remove()
		pause.remove()
	})
}

// CRI of containerd 2 has the shim's delete called for the pause container
// alone when a pod's shim has died. All of the pod must go.
func TestDeleteOfTheLeaderRemovesThePod(t *testing.T) {
	withSetups(t, func(t *testing.T, d *daemon, engine string) {
		pause := d.run(engine)
		members := []*box{d.run(engine, annotation(sandboxAnnotation, pause.id)), d.run(engine, annotation(sandboxAnnotation, pause.id))}
		state := filepath.Join(d.Dir, "state/io.containerd.runtime.v2.task", containerd.Namespace)
		// Where containerd does not interfere: it is stopped when the shim dies.
		d.Stop()
		del := func() {
			cmd := exec.Command(d.Shim, "-namespace", containerd.Namespace, "-address", d.Dir+"/c.sock", "-publish-binary", "containerd",
				"-id", pause.id, "-bundle", filepath.Join(state, pause.id), "delete")
			cmd.Dir = filepath.Join(state, pause.id)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var answer wire.DeleteResponse
			if err := wire.Unmarshal(out, &answer); err != nil || answer.ExitStatus != 137 || answer.Pid != pause.pid {
				t.Errorf("answer %+v, %v", answer, err)
			}
		}
		alive := func(b *box) bool { return syscall.Kill(int(b.pid), 0) == nil }
		for _, pid := range d.Shims() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		wait.Until(t, "the shim is gone", func() bool { return len(d.Shims()) == 0 })
		del()
		for _, b := range append(members, pause) {
			wait.Until(t, b.id+" is gone", func() bool { return !alive(b) })
			if _, err := os.Stat(filepath.Join(d.Dir, "engine", containerd.Namespace, b.id)); err == nil {
				t.Errorf("state of %s is left", b.id)
			}
		}
		d.Start()
		wait.Until(t, "containerd has cleaned up", func() bool {
			left, _ := filepath.Glob(state + "/*")
			return len(left) == 0
		})
		for _, b := range append(members, pause) {
			b.undefine()
		}
	})
}

func TestOneShimForANamespace(t *testing.T) {
	withReleases(t, testOneShimForANamespace, "BERTH_SHIM_GROUPING=namespace")
}

func testOneShimForANamespace(t *testing.T, d *daemon) {
	// Containers come and go, so that the shim is often just about to leave when
	// another start finds it.
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 15 {
				b := d.define("", sh("exit 0"))
				if err := b.create(stdio{}); err != nil {
					t.Error(err)
					b.undefine()
					continue
				}
				if err := b.start(); err != nil {
					t.Error(err)
				}
				b.wait("")
				b.remove()
			}
		}()
	}
	wg.Wait()
	var all []*box
	for range 5 {
		all = append(all, d.run(""))
	}
	// The one before them may still be on its way out.
	wait.Until(t, "there is one shim", func() bool { return len(d.Shims()) == 1 })
	for _, b := range all {
		b.remove()
	}
}
