package server_test

import (
	"fmt"
	"strings"
	"testing"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A pause that comes while a process is on its way into the container stops that, and
// not the shim, which is what a resume goes to.
func TestPauseWhileExecsStart(t *testing.T) {
	n := newNode(t)
	b := n.run("c", "sleep", "1000")
	over := make(chan struct{})
	go func() {
		defer close(over)
		for i := range 100 {
			id := fmt.Sprint("e", i)
			if err := b.addExec(id, "true"); err != nil {
				if status.Code(err) != codes.FailedPrecondition {
					t.Errorf("exec %s: %v", id, err)
				}
				continue
			}
			if err := b.begin(id); err != nil && !strings.Contains(err.Error(), "paused") {
				t.Errorf("start %s: %v", id, err)
				return
			}
		}
	}()
	for paused := 0; ; paused++ {
		select {
		case <-over:
			t.Logf("paused %d times", paused)
			b.remove()
			b.gone()
			return
		default:
		}
		if _, err := b.Pause(n.ctx(), &taskapi.PauseRequest{ID: "c"}); err != nil {
			t.Fatalf("pause %d: %v", paused, err)
		}
		if _, err := b.Resume(n.ctx(), &taskapi.ResumeRequest{ID: "c"}); err != nil {
			t.Fatalf("resume %d: %v", paused, err)
		}
	}
}
