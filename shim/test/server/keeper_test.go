package server_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"golang.org/x/sys/unix"
)

// newKept is a node whose shims have keepers.
func newKept(t *testing.T) *node {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("there are keepers on amd64 alone")
	}
	t.Setenv("BERTH_SHIM_KEEPER", "1")
	return newNode(t)
}

// killed kills the shim that serves a connection, and waits until another one answers on it.
func (b *box) killed() {
	b.n.t.Helper()
	before, err := b.Connect(b.n.ctx(), &taskapi.ConnectRequest{ID: b.id})
	b.n.must(err)
	b.n.must(unix.Kill(int(before.ShimPid), unix.SIGKILL))
	after, err := b.Connect(b.n.ctx(), &taskapi.ConnectRequest{ID: b.id})
	b.n.must(err)
	if after.ShimPid == before.ShimPid {
		b.n.t.Errorf("shim %d answers still", before.ShimPid)
	}
	if after.TaskPid != before.TaskPid {
		b.n.t.Errorf("the container's process %d has become %d", before.TaskPid, after.TaskPid)
	}
	b.shim.keeperOf(after.ShimPid)
}

// keeperOf has the end of the shim be that of the keeper of a process, which comes last.
func (s *shim) keeperOf(pid uint32) {
	s.n.t.Helper()
	unix.Close(s.pidfd)
	var err error
	s.pid, err = parentOf(int(pid))
	s.n.must(err)
	s.pidfd, err = unix.PidfdOpen(s.pid, 0)
	s.n.must(err)
}

// A shim that is killed is started anew: a container and an exec write on, and clients that wait
// for them get their statuses on the connections that they have.
func TestKilledWithKeeper(t *testing.T) {
	t.Setenv("BERTH_SHIM_KEEPER", "1")
	n := newNode(t)
	const lines = 20000
	out, exec := n.pipe("out").read(), filepath.Join(n.dir, "exec")
	b := n.define("c", n.spec("c", countingFirst(lines, 7)...))
	n.must(b.create(func(r *taskapi.CreateTaskRequest) { r.Stdout = out.path }))
	b.killed()
	waited, execWaited := make(chan uint32, 1), make(chan uint32, 1)
	await := func(id string, to chan uint32) {
		r, err := b.Wait(context.Background(), &taskapi.WaitRequest{ID: b.id, ExecID: id})
		if err != nil {
			t.Errorf("wait for %q: %v", id, err)
		}
		to <- r.GetExitStatus()
	}
	go await("", waited)
	n.must(b.begin(""))
	n.must(b.addExecTo("e", "file://"+exec, counting(lines/2, 8)...))
	b.killed()
	n.must(b.begin("e"))
	go await("e", execWaited)
	b.killed()
	b.killed() // the fourth time: one more within a minute is too many
	if got := <-waited; got != 7 {
		t.Errorf("status %d", got)
	}
	if got := <-execWaited; got != 8 {
		t.Errorf("status of the exec %d", got)
	}
	n.must(b.delete("e"))
	n.must(b.delete(""))
	<-out.done
	if got := out.String(); got != linesOf(lines) {
		t.Errorf("output is not what was written: %d bytes, want %d", len(got), len(linesOf(lines)))
	}
	if got, err := os.ReadFile(exec); err != nil || string(got) != linesOf(lines/2) {
		t.Errorf("output of the exec is not what was written: %d bytes, want %d, %v", len(got), len(linesOf(lines/2)), err)
	}
	b.shutdown()
	b.gone()
	n.wantEvents("c", "create", "start", "exec-added", "exec-started", "exit e 8", "exit c 7", "delete", "delete")
}

// One that is killed again and again is given up, and is then as one without a keeper.
func TestKeeperGivesUp(t *testing.T) {
	t.Setenv("BERTH_SHIM_KEEPER", "1")
	n := newNode(t)
	b := n.run("c", "sleep", "1000")
	for range 4 {
		b.killed()
	}
	r, err := b.Connect(n.ctx(), &taskapi.ConnectRequest{})
	n.must(err)
	n.must(unix.Kill(int(r.ShimPid), unix.SIGKILL))
	if _, err := b.Connect(n.ctx(), &taskapi.ConnectRequest{}); err == nil {
		t.Error("a shim answers that was killed five times in a minute")
	}
	b.gone()
	n.cleanUp(b)
}

// A keeper that is killed takes its shim with it.
func TestKeeperKilled(t *testing.T) {
	t.Setenv("BERTH_SHIM_KEEPER", "1")
	n := newNode(t)
	b := n.run("c", "sleep", "1000")
	keeper, err := b.keeper()
	n.must(err)
	score := func(pid int) (n int) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
		if err == nil {
			_, err = fmt.Sscan(string(text), &n)
		}
		if err != nil {
			t.Error(err)
		}
		return n
	}
	if own, its := score(b.shim.pid), score(keeper); own != min(its+1, 1000) {
		t.Errorf("oom_score_adj of the shim is %d, and of its keeper %d", own, its)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", keeper))
	n.must(err)
	for _, line := range strings.Split(string(text), "\n") {
		if kib, found := strings.CutPrefix(line, "Pss:"); found {
			t.Logf("the keeper's PSS: %s", strings.TrimSpace(kib))
		}
	}
	n.must(unix.Kill(keeper, unix.SIGKILL))
	b.gone()
	n.cleanUp(b)
}

// keeper is the process of the keeper of the shim that answers.
func (s *shim) keeper() (int, error) {
	r, err := s.Connect(s.n.ctx(), &taskapi.ConnectRequest{})
	if err != nil {
		return 0, err
	}
	return parentOf(int(r.ShimPid))
}

func parentOf(pid int) (parent int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), "PPid:")
	_, err = fmt.Sscan(after, &parent)
	return parent, err
}
