package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// needCriu gives the shim a criu that works, or skips.
func (n *node) needCriu() {
	n.t.Helper()
	defer children.Hold()() // what it is tried on is waited for there
	criu := harness.NeedCriu(n.t)
	bin := filepath.Join(n.dir, "bin")
	n.must(os.Mkdir(bin, 0o700))
	n.must(os.Symlink(criu, filepath.Join(bin, "criu")))
	n.env = append(n.env, "PATH="+bin+":"+os.Getenv("PATH"))
}

// stdinFIFO is a FIFO that the test writes.
func (n *node) stdinFIFO(name string) (path string, in *os.File) {
	n.t.Helper()
	path = filepath.Join(n.dir, name)
	n.must(unix.Mkfifo(path, 0o600))
	in, err := os.OpenFile(path, os.O_RDWR, 0)
	n.must(err)
	n.t.Cleanup(func() { in.Close() })
	return path, in
}

// What a container has in memory goes through a checkpoint, on to other FIFOs.
func TestCheckpointAndRestore(t *testing.T) {
	n := newNode(t)
	n.needCriu()
	const counter = "n=0; while read word; do n=$((n+1)); echo $word $n; done; exit 7"
	images := filepath.Join(n.dir, "images")
	streams := func(suffix string) (func(*taskapi.CreateTaskRequest), *os.File, *pipe) {
		path, in := n.stdinFIFO("in" + suffix)
		out := n.pipe("out" + suffix).read()
		return func(r *taskapi.CreateTaskRequest) { r.Stdin, r.Stdout = path, out.path }, in, out
	}
	expect := func(in *os.File, out *pipe, word, want string) {
		t.Helper()
		fmt.Fprintln(in, word)
		wait.Until(n.t, "the answer to "+word, func() bool { return strings.HasSuffix(out.String(), want+"\n") })
	}

	spec := n.spec("c", "sh", "-c", counter)
	b := n.define("c", spec)
	give, in, out := streams("1")
	n.must(b.create(give))
	n.must(b.begin(""))
	expect(in, out, "a", "a 1")
	_, err := b.Checkpoint(n.ctx(), &taskapi.CheckpointTaskRequest{ID: "c", Path: filepath.Join(n.dir, "running")})
	n.must(err)
	expect(in, out, "b", "b 2") // it was left running
	_, err = b.Checkpoint(n.ctx(), &taskapi.CheckpointTaskRequest{
		ID: "c", Path: images, Options: n.any("containerd.runc.v1.CheckpointOptions", &runcoptions.CheckpointOptions{Exit: true}),
	})
	n.must(err)
	if got := b.wait(""); got != 137 {
		t.Errorf("status %d", got)
	}
	n.must(b.delete(""))
	b.shutdown()
	b.gone()
	n.wantEvents("c", "create", "start", "checkpointed", "checkpointed", "exit c 137", "delete")

	spec = n.spec("d", "sh", "-c", counter)
	d := n.define("d", spec)
	give, in, out = streams("2")
	n.must(d.create(give, func(r *taskapi.CreateTaskRequest) { r.Checkpoint = images }))
	if r, err := d.State(n.ctx(), &taskapi.StateRequest{ID: "d"}); err != nil || r.Pid != 0 {
		t.Errorf("before the start: %v, %v", r, err)
	}
	n.must(d.begin(""))
	expect(in, out, "c", "c 3")
	n.must(d.addExec("e", "true"))
	n.must(d.begin("e"))
	d.wait("e")
	n.must(d.kill(15)) // the first process of a namespace handles it, or not
	if r, err := d.State(n.ctx(), &taskapi.StateRequest{ID: "d"}); err != nil || r.Pid != d.pid || d.pid == 0 {
		t.Errorf("after the start: %v, %v", r, err)
	}
	d.remove()
	d.gone()
}

// What criu refuses is said, with the log that tells why.
func TestCheckpointThatFails(t *testing.T) {
	n := newNode(t)
	n.env = append(n.env, "PATH=/nowhere")
	b := n.run("c", "sleep", "1000")
	_, err := b.Checkpoint(n.ctx(), &taskapi.CheckpointTaskRequest{ID: "c", Path: filepath.Join(n.dir, "images")})
	n.code("checkpoint without criu", err, codes.Unknown, "criu")
	if r, err := b.State(n.ctx(), &taskapi.StateRequest{ID: "c"}); err != nil || r.Pid != b.pid {
		t.Errorf("state afterwards: %v, %v", r, err)
	}
	b.remove()
	d := n.define("d", n.spec("d", "sleep", "1000"))
	n.must(d.create(func(r *taskapi.CreateTaskRequest) { r.Checkpoint = filepath.Join(n.dir, "none") }))
	n.code("start from images that are not there", d.begin(""), codes.Unknown, "none")
	n.must(d.delete(""))
	d.shutdown()
	d.gone()
}
