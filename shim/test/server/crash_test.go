package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// live takes a container through its life until the shim is gone.
func (b *box) live() {
	if b.create() != nil || b.begin("") != nil {
		return
	}
	for i := 0; ; i++ {
		id := fmt.Sprint("e", i)
		if b.addExec(id, "true") != nil || b.begin(id) != nil {
			return
		}
		if _, err := b.Wait(b.n.ctx(), &taskapi.WaitRequest{ID: b.id, ExecID: id}); err != nil {
			return
		}
		if b.delete(id) != nil {
			return
		}
	}
}

// nothingLeft checks that no process, mount or cgroup of a container is there.
func (n *node) nothingLeft(id string) {
	n.t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	n.must(err)
	if strings.Contains(string(mounts), " "+filepath.Join(n.dir, "bundles", id, "rootfs")+" ") {
		n.t.Errorf("the root file system of %s is mounted", id)
	}
	for _, pattern := range hierarchies() {
		groups, _ := filepath.Glob(filepath.Join(pattern+n.cgroup, id))
		for _, group := range groups {
			n.t.Errorf("cgroup %s is left", group)
		}
	}
}

// Whenever a shim is killed, its delete finds all that it has done.
func TestShimIsKilledAtAnyMoment(t *testing.T) {
	n := newNode(t)
	const rounds = 40
	for i := range rounds {
		b := n.define(fmt.Sprint("c", i), n.spec(fmt.Sprint("c", i), "sleep", "1000"))
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.live()
		}()
		time.Sleep(time.Duration(i) * 1300 * time.Microsecond) // from before the create to the execs
		n.must(unix.Kill(b.shim.pid, unix.SIGKILL))
		<-done
		b.gone()
		if r := n.cleanUp(b); b.pid != 0 && (r.Pid != b.pid || r.ExitStatus != 137) {
			t.Errorf("killed with pid %d, but the answer is %v", b.pid, r)
		}
		n.nothingLeft(b.id)
		// A second delete finds nothing to do, and is no error.
		n.cleanUp(b)
	}
}

// The end that a shim has seen is the one that delete reports.
func TestDeleteReportsTheEnd(t *testing.T) {
	n := newNode(t)
	b := n.run("c", "sh", "-c", "exit 42")
	before := time.Now()
	b.wait("")
	n.must(unix.Kill(b.shim.pid, unix.SIGKILL))
	b.gone()
	r := n.cleanUp(b)
	if r.Pid != b.pid || r.ExitStatus != 42 || r.ExitedAt.AsTime().After(time.Now()) || r.ExitedAt.AsTime().Before(before.Add(-time.Minute)) {
		t.Errorf("answer %v", r)
	}
	n.nothingLeft("c")
}

// After kill -9 of a pod's shim the one delete for the pause container, which is
// all that CRI of containerd 2 has called, removes every container of the pod.
func TestKilledShimOfAPod(t *testing.T) {
	n := newNode(t)
	for i := range 6 {
		inPod := func(s *specs.Spec, pause string) *specs.Spec {
			s.Annotations = map[string]string{"io.kubernetes.cri.sandbox-id": pause}
			return s
		}
		id := fmt.Sprint("pause", i)
		pause := n.define(id, inPod(n.spec(id, "sleep", "1000"), id))
		n.must(pause.create())
		n.must(pause.begin(""))
		var members []*box
		done := make(chan struct{})
		for j := range 3 {
			name := fmt.Sprint("c", i, "-", j)
			dir := n.bundle(name, inPod(n.spec(name, "sleep", "1000"), id))
			b := &box{shim: n.start(name, dir), id: name, dir: dir}
			if b.shim.pid != pause.shim.pid {
				t.Fatalf("%s has a shim of its own", name)
			}
			members = append(members, b)
			go func() {
				defer func() { done <- struct{}{} }()
				b.live()
			}()
		}
		time.Sleep(time.Duration(i) * 12 * time.Millisecond)
		n.must(unix.Kill(pause.shim.pid, unix.SIGKILL))
		for range members {
			<-done
		}
		pause.gone()
		if i%2 == 1 {
			// containerd before 2.4 takes the containers' bundles away first.
			for _, b := range members {
				unix.Unmount(filepath.Join(b.dir, "rootfs"), unix.MNT_DETACH)
				n.must(os.RemoveAll(b.dir))
			}
		}
		n.cleanUp(pause)
		for _, b := range append(members, pause) {
			n.dead(b)
			if _, err := os.Lstat(filepath.Join(n.dir, "engine", namespace, b.id)); err == nil {
				t.Errorf("state of %s is left", b.id)
			}
			n.nothingLeft(b.id)
		}
	}
}

// A delete beside a shim that lives takes nothing from it but what it is for.
func TestDeleteBesideALivingShim(t *testing.T) {
	n := newNode(t)
	keeper := n.run("keeper", "sleep", "1000")
	b := &box{shim: keeper.shim, id: "c"}
	spec := n.spec("c", "true")
	spec.Annotations = map[string]string{"io.containerd.runc.v2.group": "keeper"}
	b.dir = n.bundle("c", spec)
	n.start("c", b.dir)
	n.must(b.create())
	n.must(b.begin(""))
	b.wait("")
	n.must(b.delete(""))
	n.cleanUp(b)
	if r, err := keeper.State(n.ctx(), &taskapi.StateRequest{ID: "keeper"}); err != nil || r.Pid != keeper.pid || !alive(keeper.pid) {
		t.Errorf("%v, %v", r, err)
	}
	keeper.remove()
}
