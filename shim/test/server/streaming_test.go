package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	streamingapi "github.com/containerd/containerd/api/services/streaming/v1"
	"github.com/containerd/containerd/api/types/transfer"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// stream is a stream of a client, as containerd's CRI opens it.
type stream struct {
	n  *node
	id string
	streamingapi.TTRPCStreaming_StreamClient
}

// open opens a stream, over a connection that the shim is also called by.
func (s *shim) open(id string) *stream {
	s.n.t.Helper()
	client, err := streamingapi.NewTTRPCStreamingClient(s.client).Stream(s.n.ctx())
	s.n.must(err)
	st := &stream{s.n, id, client}
	st.send(&streamingapi.StreamInit{ID: id})
	_, err = client.Recv() // that it is there
	s.n.must(err)
	return st
}

func (st *stream) send(m proto.Message) {
	st.n.t.Helper()
	st.n.must(st.Send(st.n.any(string(proto.MessageName(m)), m)))
}

// uri names the stream in place of a path.
func (st *stream) uri() string { return "ttrpc+unix:///some/address?streaming_id=" + st.id }

// grant allows the shim to send.
func (st *stream) grant(n int32) { st.send(&transfer.WindowUpdate{Update: n}) }

// data waits for the next piece; at the end it is nil.
func (st *stream) data() []byte {
	st.n.t.Helper()
	any, err := st.Recv()
	if errors.Is(err, io.EOF) {
		return nil
	}
	st.n.must(err)
	var d transfer.Data
	st.n.must(proto.Unmarshal(any.Value, &d))
	return d.Data
}

// all reads to the end, and grants as much as it reads.
func (st *stream) all() (got []byte) {
	st.n.t.Helper()
	st.grant(64 << 10)
	for {
		d := st.data()
		if d == nil {
			return got
		}
		got = append(got, d...)
		st.grant(int32(len(d)))
	}
}

func TestStreams(t *testing.T) {
	n := newNode(t)
	b := n.define("c", n.spec("c", "sh", "-c", "seq 1 100000 >/tmp/numbers; cat /tmp/numbers; echo wrong >&2; cat; exit 5"))
	in, out, err := b.open("c-in"), b.open("c-out"), b.open("c-err")
	n.must(b.create(func(r *taskapi.CreateTaskRequest) { r.Stdin, r.Stdout, r.Stderr = in.uri(), out.uri(), err.uri() }))
	n.must(b.begin(""))

	// No more comes than was granted, and no other stream waits meanwhile.
	out.grant(1000)
	first := out.data()
	if len(first) > 1000 || !strings.HasPrefix(string(first), "1\n2\n3\n") {
		t.Errorf("%d bytes: %.20q", len(first), first)
	}
	n.must(b.addExec("e", "true"))
	n.must(b.begin("e"))
	b.wait("e")
	n.must(b.delete("e"))

	rest := make(chan []byte)
	go func() { rest <- out.all() }()
	if got := string(err.line()); got != "wrong\n" {
		t.Errorf("stderr %q", got)
	}
	var granted transfer.WindowUpdate
	any, e := in.Recv()
	n.must(e)
	if n.must(proto.Unmarshal(any.Value, &granted)); granted.Update <= 0 {
		t.Errorf("granted: %v", &granted)
	}
	in.send(&transfer.Data{Data: []byte("from the client\n")})
	n.must(in.CloseSend())
	if got := b.wait(""); got != 5 {
		t.Errorf("status %d", got)
	}
	n.must(b.delete(""))
	got := append(first, <-rest...)
	var want bytes.Buffer
	for i := 1; i <= 100000; i++ {
		want.WriteString(strconv.Itoa(i) + "\n")
	}
	want.WriteString("from the client\n")
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%d bytes, want %d; the end is %.60q", len(got), want.Len(), got[max(0, len(got)-60):])
	}
	b.shutdown()
	b.gone()
}

// line reads up to the end of a line.
func (st *stream) line() (got []byte) {
	st.n.t.Helper()
	st.grant(64 << 10)
	for !bytes.HasSuffix(got, []byte("\n")) {
		got = append(got, st.data()...)
	}
	return got
}

func TestStreamsOfAnExec(t *testing.T) {
	n := newNode(t)
	b := n.run("c", "sleep", "1000")
	// CloseIO takes nothing from what the client sends until it ends the stream:
	// containerd calls it on another connection, which may be faster.
	in, out := b.open("in"), b.open("out")
	_, err := b.Exec(n.ctx(), &taskapi.ExecProcessRequest{
		ID: "c", ExecID: "cat", Stdin: in.uri(), Stdout: out.uri(), Spec: &anypb.Any{Value: []byte(`{"args":["cat"],"cwd":"/","env":["PATH=/bin"]}`)},
	})
	n.must(err)
	n.must(b.begin("cat"))
	in.send(&transfer.Data{Data: []byte("word\n")})
	if got := string(out.line()); got != "word\n" {
		t.Errorf("%q", got)
	}
	_, err = b.CloseIO(n.ctx(), &taskapi.CloseIORequest{ID: "c", ExecID: "cat", Stdin: true})
	n.must(err)
	in.send(&transfer.Data{Data: []byte("late\n")})
	if got := string(out.line()); got != "late\n" {
		t.Errorf("sent after CloseIO: %q", got)
	}
	n.must(in.CloseSend())
	if got := b.wait("cat"); got != 0 {
		t.Errorf("status %d", got)
	}
	n.must(b.delete("cat"))

	// A client that goes away takes its own stream with it, and nothing else.
	away := n.connect(b.address())
	gone := away.open("gone")
	_, err = b.Exec(n.ctx(), &taskapi.ExecProcessRequest{
		ID: "c", ExecID: "seq", Stdout: gone.uri(), Spec: &anypb.Any{Value: []byte(`{"args":["seq","1","100000"],"cwd":"/","env":["PATH=/bin"]}`)},
	})
	n.must(err)
	n.must(b.begin("seq"))
	away.client.Close()
	if got := b.wait("seq"); got > 1 && got != 141 { // 141 is SIGPIPE
		t.Errorf("status %d", got)
	}
	n.must(b.delete("seq"))

	// A stream that nobody opens, and places that are none.
	_, err = b.Exec(n.ctx(), &taskapi.ExecProcessRequest{ID: "c", ExecID: "none", Stdout: "ttrpc+unix:///a?streaming_id=none", Spec: &anypb.Any{Value: []byte(`{"args":["true"],"cwd":"/"}`)}})
	n.must(err)
	ctx, cancel := context.WithTimeout(n.ctx(), 100*time.Millisecond)
	defer cancel()
	_, err = b.Start(ctx, &taskapi.StartRequest{ID: "c", ExecID: "none"})
	if err == nil {
		t.Error("a stream that nobody has opened")
	}
	_, err = b.Exec(n.ctx(), &taskapi.ExecProcessRequest{ID: "c", ExecID: "odd", Stdout: "ttrpc+unix:///a", Spec: &anypb.Any{Value: []byte(`{"args":["true"],"cwd":"/"}`)}})
	n.must(err)
	n.code("a stream without an id", b.begin("odd"), codes.InvalidArgument, "streaming_id")
	client, err := streamingapi.NewTTRPCStreamingClient(b.client).Stream(n.ctx())
	n.must(err)
	n.must(client.Send(&anypb.Any{TypeUrl: "what", Value: []byte("x")}))
	_, err = client.Recv()
	n.code("a stream that does not say its id", err, codes.InvalidArgument)
	b.remove()
	b.gone()
}
