package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types/transfer"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// A shim is upgraded again and again while streams go over its socket, of a container and of an
// exec at a terminal: each byte comes once, in both directions, and no more than was granted.
func TestUpgradedWithStreams(t *testing.T) {
	newNode(t).interruptStreams(func(*box) bool { return false })
}

// So it is where the shim has a keeper, and is killed as well.
func TestKilledWithStreams(t *testing.T) {
	const most, pause = 4, 3 // one more kill within a minute is too many
	killed, next := 0, 0
	newKept(t).interruptStreams(func(b *box) bool {
		if next++; killed == most || next%pause != 0 {
			return false
		}
		killed++
		b.killed()
		return true
	})
	if killed < most {
		t.Errorf("killed %d times", killed)
	}
}

// interruptStreams has streams go over a shim's socket, which is interrupted all the time: by an
// upgrade, or otherwise.
func (n *node) interruptStreams(otherwise func(b *box) bool) {
	n.t.Helper()
	t := n.t
	const lines, sent = 60000, 300
	b := n.define("c", n.spec("c", "sh", "-c", fmt.Sprintf("seq 1 %d; cat; exit 7", lines)))
	in, out, unused := b.open("in"), b.open("out"), b.open("unused")
	n.must(b.create(func(r *taskapi.CreateTaskRequest) { r.Stdin, r.Stdout = in.uri(), out.uri() }))
	waited := make(chan uint32, 1)
	go func() {
		r, err := b.Wait(context.Background(), &taskapi.WaitRequest{ID: "c"})
		if err != nil {
			t.Errorf("wait: %v", err)
		}
		waited <- r.GetExitStatus()
	}()
	n.must(b.begin(""))
	// The output of the terminal waits in the shim for a grant, over some upgrades.
	terminal := b.open("terminal")
	_, err := b.Exec(n.ctx(), &taskapi.ExecProcessRequest{
		ID: "c", ExecID: "e", Stdout: terminal.uri(), Terminal: true,
		Spec: &anypb.Any{Value: []byte(`{"args":["seq","1","5000"],"cwd":"/","env":["PATH=/bin"],"terminal":true}`)},
	})
	n.must(err)
	n.must(b.begin("e"))

	got := make(chan string, 1)
	go func() { got <- out.inPieces(t, 3000) }()
	written := make(chan string, 1)
	go func() { written <- in.numbers(t, sent) }()
	upgrades := 0
	upgrade := func() {
		t.Helper()
		if otherwise(b) {
			return
		}
		text, err := n.upgrade("c")
		if err != nil || !strings.Contains(text, "upgraded from") {
			t.Fatalf("upgrade %d says %q, %v", upgrades, text, err)
		}
		upgrades++
	}
	for len(written) == 0 || upgrades < 10 {
		upgrade()
	}
	// The exec ends only when there is room for what it writes, and would end with the container.
	shown := make(chan string, 1)
	go func() { shown <- terminal.inPieces(t, 3000) }()
	for len(shown) == 0 {
		upgrade()
	}
	if err := in.CloseSend(); err != nil {
		t.Error(err)
	}
	for len(got) == 0 {
		upgrade()
	}
	t.Logf("%d upgrades", upgrades)
	if got, want := <-got, linesOf(lines)+<-written; got != want {
		t.Errorf("%d bytes, want %d; the end is %.60q", len(got), len(want), got[max(0, len(got)-60):])
	}
	if got, want := <-shown, strings.ReplaceAll(linesOf(5000), "\n", "\r\n"); got != want {
		t.Errorf("%d bytes of the terminal, want %d; the end is %.60q", len(got), len(want), got[max(0, len(got)-60):])
	}
	if got := <-waited; got != 7 {
		t.Errorf("status %d", got)
	}
	if got := b.wait("e"); got != 0 {
		t.Errorf("status of the exec %d", got)
	}
	// One that was opened before, and is used only now.
	n.must(b.delete("e"))
	n.must(b.delete(""))
	if err := unused.CloseSend(); err != nil {
		t.Error(err)
	}
	b.shutdown()
	b.gone()
}

// inPieces reads to the end, and grants so many bytes each time that it has had as many.
func (st *stream) inPieces(t testing.TB, grant int) string {
	var got strings.Builder
	for granted := 0; ; {
		if granted == got.Len() {
			if st.Send(st.n.any(string(proto.MessageName(&transfer.WindowUpdate{})), &transfer.WindowUpdate{Update: int32(grant)})) == nil {
				granted += grant
			}
		}
		any, err := st.Recv()
		if err != nil {
			return got.String()
		}
		var d transfer.Data
		if err := proto.Unmarshal(any.Value, &d); err != nil {
			t.Error(err)
		}
		got.Write(d.Data)
		if got.Len() > granted {
			t.Errorf("%d bytes, of which %d were granted", got.Len(), granted)
		}
	}
}

// numbers sends numbered lines of a thousand bytes, as far as the shim grants it, and gives them.
func (st *stream) numbers(t testing.TB, n int) string {
	var all strings.Builder
	granted := 0
	for i := range n {
		line := fmt.Sprintf("%0999d\n", i)
		for granted < all.Len()+len(line) {
			any, err := st.Recv()
			var update transfer.WindowUpdate
			if err == nil {
				err = proto.Unmarshal(any.Value, &update)
			}
			if err != nil {
				t.Errorf("wait for a grant: %v", err)
				return all.String()
			}
			granted += int(update.Update)
		}
		if err := st.Send(st.n.any(string(proto.MessageName(&transfer.Data{})), &transfer.Data{Data: []byte(line)})); err != nil {
			t.Errorf("send: %v", err)
			return all.String()
		}
		all.WriteString(line)
	}
	return all.String()
}
