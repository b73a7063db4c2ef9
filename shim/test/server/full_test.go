package server_test

import (
	"strings"
	"testing"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/berth-runtime/berth/internal/test/wait"
)

// A shim goes on when the memory that it shares with its keeper is full, but is not upgraded: each
// call is answered, and what was asked before as well.
func TestFullMemory(t *testing.T) {
	n := newKept(t)
	c := n.talking("c")
	// Each of these waits, and is kept with all that it carries, in a place whose size is a power
	// of two: 4 MiB, of 256.
	const waits = 70
	padding := protowire.AppendBytes(protowire.AppendTag(nil, 1000, protowire.BytesType), make([]byte, 2<<20))
	statuses := make(chan uint32, waits)
	for range waits {
		go func() {
			r := &taskapi.WaitRequest{ID: "c"}
			r.ProtoReflect().SetUnknown(padding)
			answer, err := c.Wait(n.ctx(), r)
			if err != nil {
				t.Errorf("wait: %v", err)
			}
			statuses <- answer.GetExitStatus()
		}()
	}
	wait.Until(t, "the memory to be full", func() bool { return strings.Contains(n.logged(), "is full") })
	c.say("full")
	if _, err := c.upgradeTo(n.binary); err == nil || !strings.Contains(err.Error(), "is full") {
		t.Errorf("upgraded: %v", err)
	}
	c.say("as it was")
	n.must(c.addExec("e", "sh", "-c", "exit 5"))
	n.must(c.begin("e"))
	if got := c.wait("e"); got != 5 {
		t.Errorf("status of the exec %d", got)
	}
	n.must(c.delete("e"))
	c.in.Close()
	_, err := c.CloseIO(n.ctx(), &taskapi.CloseIORequest{ID: "c", Stdin: true})
	n.must(err)
	for range waits {
		if got := <-statuses; got != 4 {
			t.Errorf("status %d", got)
		}
	}
	n.must(c.delete(""))
	c.shutdown()
	c.gone()
	n.wantEvents("c", "create", "start", "exec-added", "exec-started", "exit e 5", "delete", "exit c 4", "delete")
}
