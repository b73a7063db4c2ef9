package integration

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	tasks "github.com/containerd/containerd/api/services/tasks/v1"

	"github.com/berth-runtime/berth/shim/wire"

	"github.com/berth-runtime/berth/test/containerd"
)

// After kill -9 of a shim, at any moment, nothing of the container is left.
func TestShimIsKilled(t *testing.T) {
	withSetups(t, func(t *testing.T, d *daemon, engine string) {
		for i := range 6 {
			b := d.define(engine)
			done := make(chan struct{})
			if i < 2 {
				if err := b.create(stdio{}); err != nil {
					t.Fatal(err)
				}
				if err := b.start(); err != nil {
					t.Fatal(err)
				}
				close(done)
			} else {
				go func() { // somewhere in the middle
					defer close(done)
					if b.create(stdio{}) == nil {
						b.start()
					}
				}()
				time.Sleep(time.Duration(rand.Intn(60)) * time.Millisecond)
			}
			killAll := func() {
				for _, pid := range d.Shims() {
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			killAll()
			<-done
			killAll() // it may have come too early
			eventually(t, "containerd has cleaned up", func() bool {
				r, err := d.tasks().List(d.Context(), &tasks.ListTasksRequest{})
				if err != nil {
					t.Fatal(err)
				}
				if i < 2 && len(r.Tasks) == 1 && r.Tasks[0].Status.String() == "STOPPED" {
					d.tasks().Delete(d.Context(), &tasks.DeleteTaskRequest{ContainerID: b.id})
				}
				bundles, _ := filepath.Glob(filepath.Join(d.Dir, "state/io.containerd.runtime.v2.task", containerd.Namespace, "*"))
				return len(r.Tasks) == 0 && len(bundles) == 0
			})
			if _, err := d.containers().Delete(d.Context(), &containers.DeleteContainerRequest{ID: b.id}); err != nil {
				t.Error(err)
			}
		}
	})
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
		del()
		for _, b := range append(members, pause) {
			eventually(t, b.id+" is gone", func() bool { return !alive(b) })
			if _, err := os.Stat(filepath.Join(d.Dir, "engine", containerd.Namespace, b.id)); err == nil {
				t.Errorf("state of %s is left", b.id)
			}
		}
		d.Start()
		eventually(t, "containerd has cleaned up", func() bool {
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
	if n := len(d.Shims()); n != 1 {
		t.Errorf("%d shims, want 1", n)
	}
	for _, b := range all {
		b.remove()
	}
}

// Many rounds leave the shim as it was.
func TestNoGrowth(t *testing.T) {
	d := newDaemon(t, containerd.Old(t))
	keeper := d.run("")
	defer keeper.remove()
	round := func() {
		b := d.define("", annotation(groupAnnotation, keeper.id))
		s := d.pipes(b.id, false)
		if err := b.create(s); err != nil {
			t.Fatal(err)
		}
		if err := b.start(); err != nil {
			t.Fatal(err)
		}
		e := d.pipes("e", false)
		if err := b.exec("e", e, "sh", "-c", "echo x; read y"); err != nil {
			t.Fatal(err)
		}
		b.kill(9)
		b.wait("e")
		b.wait("")
		if _, err := b.deleteExec("e"); err != nil {
			t.Error(err)
		}
		if got := e.output[0].wait(); got != "x\n" && got != "" {
			t.Errorf("output %q", got)
		}
		b.remove()
		s.writer.Close()
		e.writer.Close()
	}
	shims := d.Shims()
	if len(shims) != 1 {
		t.Fatalf("%d shims", len(shims))
	}
	count := func() (fds, threads int) {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", shims[0]))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", shims[0]))
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := bytes.Cut(text, []byte("\nThreads:"))
		fmt.Sscan(string(after), &threads)
		return len(entries), threads
	}
	for range 5 {
		round()
	}
	fds, threads := count()
	for range 60 {
		round()
	}
	eventually(t, fmt.Sprintf("descriptors are %d again", fds), func() bool { now, _ := count(); return now <= fds })
	if _, now := count(); now > threads+6 {
		t.Errorf("%d threads became %d", threads, now)
	}
}
