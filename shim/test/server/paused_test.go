package server_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types/task"
)

func (n *node) paused(id string) *box {
	n.t.Helper()
	b := n.run(id, "sleep", "1000")
	_, err := b.Pause(n.ctx(), &taskapi.PauseRequest{ID: id})
	n.must(err)
	if r, err := b.State(n.ctx(), &taskapi.StateRequest{ID: id}); err != nil || r.Status != task.Status_PAUSED {
		n.t.Fatalf("state of a paused container: %v, %v", r, err)
	}
	return b
}

// A paused container can be killed, though nothing of it runs.
func TestPausedContainerIsKilled(t *testing.T) {
	n := newNode(t)
	b := n.paused("c")
	n.code("delete of a paused one", b.delete(""), codes.FailedPrecondition, "paused")
	_, err := b.Kill(n.ctx(), &taskapi.KillRequest{ID: "c", Signal: 9}) // its first process alone
	n.must(err)
	if got := b.wait(""); got != 137 {
		t.Errorf("status %d", got)
	}
	n.must(b.delete(""))
	b.shutdown()
	b.gone()
	n.wantEvents("c", "create", "start", "paused", "exit c 137", "delete")
}

// The delete for a killed shim ends a paused container, too.
func TestShimOfAPausedContainerIsKilled(t *testing.T) {
	n := newNode(t)
	b := n.paused("c")
	b.kill9()
	if r := n.cleanUp(b); r.Pid != b.pid || r.ExitStatus != 137 {
		t.Errorf("answer %v", r)
	}
	n.nothingLeft("c")
}
