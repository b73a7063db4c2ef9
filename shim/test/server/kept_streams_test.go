package server_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/types/known/anypb"
)

// Wherever in its life the shim is killed, streams over its socket go on: what their clients send
// reaches the processes once, and what these write the clients, and both their ends.
func TestStreamsOnceWhereverKilled(t *testing.T) { newKept(t).killedAtEachCall(streaming) }

// streaming is a container with an exec at a terminal, both of which have streams over the socket.
func streaming(id, shared string) *life {
	return &life{
		script: "echo run >> /shared/init; seq 1 50; cat; exit 7",
		lead:   (*box).lifeOfStreams,
		check: func(b *box) {
			if text, err := os.ReadFile(filepath.Join(shared, "init")); err != nil || string(text) != "run\n" {
				b.n.t.Errorf("the container's program has run so: %q, %v", text, err)
			}
		},
		calls: 1000,
	}
}

func (b *box) lifeOfStreams() error {
	n, ctx, id := b.n, b.n.ctx(), b.id
	in, out, terminal := b.open("in"), b.open("out"), b.open("terminal")
	if err := b.create(func(r *taskapi.CreateTaskRequest) { r.Stdin, r.Stdout = in.uri(), out.uri() }); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if err := b.begin(""); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	_, err := b.Exec(ctx, &taskapi.ExecProcessRequest{
		ID: id, ExecID: "e", Stdout: terminal.uri(), Terminal: true,
		Spec: &anypb.Any{Value: []byte(`{"args":["echo","shown"],"cwd":"/","env":["PATH=/bin"],"terminal":true}`)},
	})
	if err == nil {
		err = b.begin("e")
	}
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	got, shown := make(chan string, 1), make(chan string, 1)
	go func() { got <- out.inPieces(n.t, 3000) }()
	go func() { shown <- terminal.inPieces(n.t, 3) }()
	want := linesOf(50) + in.numbers(n.t, 40)
	if got := <-shown; got != "shown\r\n" {
		return fmt.Errorf("the terminal has shown %q", got)
	}
	// The container ends with its input, and what is executed in it with that.
	if err := b.endsWith("e", 0); err != nil {
		return err
	}
	if err := in.CloseSend(); err != nil {
		return fmt.Errorf("close the input: %w", err)
	}
	if got := <-got; got != want {
		return fmt.Errorf("%d bytes of output, want %d; the end is %.60q", len(got), len(want), got[max(0, len(got)-60):])
	}
	if err := b.endsWith("", 7); err != nil {
		return err
	}
	for _, exec := range []string{"e", ""} {
		if err := b.delete(exec); err != nil {
			return fmt.Errorf("delete %q: %w", exec, err)
		}
	}
	// That it has gone is an answer.
	if _, err := b.Shutdown(ctx, &taskapi.ShutdownRequest{}); err != nil && !errors.Is(err, ttrpc.ErrClosed) {
		return fmt.Errorf("shutdown: %w", err)
	}
	return nil
}

// endsWith waits for the end of a process.
func (b *box) endsWith(exec string, want uint32) error {
	r, err := b.Wait(b.n.ctx(), &taskapi.WaitRequest{ID: b.id, ExecID: exec})
	if err == nil && r.ExitStatus != want {
		err = fmt.Errorf("it ends with %d, want %d", r.ExitStatus, want)
	}
	if err != nil {
		return fmt.Errorf("wait for %q: %w", exec, err)
	}
	return nil
}
