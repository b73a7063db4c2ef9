package server_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// Whatever a client asks for wrongly, it learns so by the right code, and the
// shim serves on.
func TestBadInput(t *testing.T) {
	n := newNode(t)
	b := n.define("c", n.spec("c", "sleep", "1000"))
	ctx := n.ctx()

	n.code("start of an unknown id", b.begin(""), codes.NotFound, `"c"`)
	_, err := b.State(ctx, &taskapi.StateRequest{ID: "nobody"})
	n.code("state of an unknown id", err, codes.NotFound)
	_, err = b.Wait(ctx, &taskapi.WaitRequest{ID: "nobody"})
	n.code("wait for an unknown id", err, codes.NotFound)
	_, err = b.Stats(ctx, &taskapi.StatsRequest{ID: "nobody"})
	n.code("stats of an unknown id", err, codes.NotFound)
	_, err = b.Create(ctx, &taskapi.CreateTaskRequest{})
	n.code("create of nothing", err, codes.InvalidArgument)
	n.code("options of a type that nobody knows",
		b.create(func(r *taskapi.CreateTaskRequest) { r.Options = &anypb.Any{TypeUrl: "some.Thing"} }),
		codes.InvalidArgument, "some.Thing")
	n.code("options that are no message",
		b.create(func(r *taskapi.CreateTaskRequest) {
			r.Options = &anypb.Any{TypeUrl: "containerd.runc.v1.Options", Value: []byte{0xff}}
		}), codes.InvalidArgument)
	n.code("stdio path that is not there",
		b.create(func(r *taskapi.CreateTaskRequest) { r.Stdout = filepath.Join(n.dir, "none") }),
		codes.InvalidArgument, "none", "no such file")
	n.code("stdin path that is not there",
		b.create(func(r *taskapi.CreateTaskRequest) { r.Stdin = filepath.Join(n.dir, "none") }),
		codes.InvalidArgument, "stdin")
	n.code("stdio of an unknown kind",
		b.create(func(r *taskapi.CreateTaskRequest) { r.Stdout = "carrier://pigeon" }), codes.InvalidArgument, "carrier")
	n.code("logging program that is not there",
		b.create(func(r *taskapi.CreateTaskRequest) { r.Stdout = "binary:///none/at/all" }), codes.InvalidArgument, "/none/at/all")
	n.code("root file system that is not there",
		b.create(func(r *taskapi.CreateTaskRequest) { r.Rootfs[0].Source = "/none" }), codes.Unknown, "/none")

	n.must(b.create())
	n.code("create of an id that is there", b.create(), codes.AlreadyExists)
	n.must(b.begin(""))
	n.code("start of a running task", b.begin(""), codes.FailedPrecondition)
	n.code("delete of a running task", b.delete(""), codes.FailedPrecondition, "running")
	n.code("start of an unknown exec", b.begin("e"), codes.NotFound)
	_, err = b.Exec(ctx, &taskapi.ExecProcessRequest{ID: "c", ExecID: "e"})
	n.code("exec without a process", err, codes.InvalidArgument)
	_, err = b.Exec(ctx, &taskapi.ExecProcessRequest{ID: "c", ExecID: "bad", Spec: &anypb.Any{Value: []byte(`{"args":7}`)}})
	n.must(err) // it is read when the process is started
	n.code("start of an exec that is no process", b.begin("bad"), codes.InvalidArgument, "/args")
	n.must(b.delete("bad"))
	_, err = b.Exec(ctx, &taskapi.ExecProcessRequest{ID: "c", ExecID: "gone", Spec: &anypb.Any{Value: []byte(`{"args":["/none"],"cwd":"/"}`)}})
	n.must(err)
	n.code("exec of a program that is not there", b.begin("gone"), codes.Unknown, "/none", "no such file")
	n.must(b.delete("gone"))
	_, err = b.Kill(ctx, &taskapi.KillRequest{ID: "c", Signal: 4711})
	n.code("signal that is none", err, codes.InvalidArgument)
	_, err = b.Update(ctx, &taskapi.UpdateTaskRequest{ID: "c", Resources: &anypb.Any{Value: []byte(`{"pids":{"limit":"many"}}`)}})
	n.code("update with resources that are none", err, codes.InvalidArgument, "/pids/limit")
	_, err = b.Checkpoint(ctx, &taskapi.CheckpointTaskRequest{ID: "c", Path: n.dir, Options: &anypb.Any{Value: []byte{0xff}}})
	n.code("checkpoint options that are no message", err, codes.InvalidArgument)
	_, err = b.Resume(ctx, &taskapi.ResumeRequest{ID: "c"})
	n.code("resume of a task that is not paused", err, codes.FailedPrecondition)

	n.must(b.kill(9))
	b.wait("")
	n.code("kill after the exit", b.kill(9), codes.NotFound)
	_, err = b.Exec(ctx, &taskapi.ExecProcessRequest{ID: "c", ExecID: "e", Spec: &anypb.Any{Value: []byte(`{}`)}})
	n.code("exec after the exit", err, codes.FailedPrecondition)
	_, err = b.Pause(ctx, &taskapi.PauseRequest{ID: "c"})
	n.code("pause after the exit", err, codes.FailedPrecondition)
	n.must(b.delete(""))
	n.code("delete of what was deleted", b.delete(""), codes.NotFound)
	b.shutdown()
	b.gone()
}

// The engine's own sentence reaches the client, with the place in config.json.
func TestRefusedConfig(t *testing.T) {
	n := newNode(t)
	spec := n.spec("c", "sleep", "1000")
	spec.Mounts[1].Destination = "relative"
	spec.Process.Cwd = "nowhere"
	b := n.define("c", spec)
	n.code("config that the engine refuses", b.create(), codes.InvalidArgument, "/process/cwd")
	spec = n.spec("c", "/no/such/program")
	b2 := b.join("d", spec)
	n.code("program that is not there", b2.create(), codes.Unknown, "/process/args/0", "/no/such/program")
	b3 := b.join("e", nil)
	n.code("bundle without a config", b3.create(), codes.InvalidArgument, "config.json")
	n.must(os.WriteFile(filepath.Join(b3.dir, "config.json"), []byte("{"), 0o600))
	n.code("config that is no JSON", b3.create(), codes.InvalidArgument, "config.json")
	b.shutdown()
	b.gone()
	for _, id := range []string{"c", "d", "e"} {
		if got := n.seen(id); len(got) > 0 {
			t.Errorf("events of %s, which was never made: %q", id, got)
		}
	}
}

// Bytes that are no requests end one connection at most.
func TestMalformedRequests(t *testing.T) {
	n := newNode(t)
	b := n.run("c", "sleep", "1000")
	dial := func() net.Conn {
		conn, err := net.Dial("unix", strings.TrimPrefix(b.address(), "unix://"))
		n.must(err)
		return conn
	}
	frame := func(stream uint32, kind byte, body []byte) []byte {
		head := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
		head = binary.BigEndian.AppendUint32(head, stream)
		return append(append(head, kind, 0), body...)
	}
	request := func(method string, payload []byte) []byte {
		return wire.Marshal(&wire.Request{Service: "containerd.task.v2.Task", Method: method, Payload: payload})
	}
	for _, test := range []struct {
		what string
		send []byte
		want codes.Code // OK for no answer
	}{
		{"noise", []byte(strings.Repeat("GET / HTTP/1.1\r\n\r\n", 10)), codes.OK},
		{"half of a header", []byte{0, 0, 0}, codes.OK},
		{"half of a message", frame(1, 1, make([]byte, 100))[:50], codes.OK},
		{"request that is no message", frame(1, 1, []byte{0xff, 0xff}), codes.InvalidArgument},
		{"even stream", frame(2, 1, request("State", nil)), codes.InvalidArgument},
		{"payload that is no message", frame(1, 1, request("State", []byte{0xff})), codes.InvalidArgument},
		{"text that is not UTF-8", frame(1, 1, request("State", []byte{0x0a, 1, 0xff})), codes.InvalidArgument},
		{"unknown method", frame(1, 1, request("Dance", nil)), codes.Unimplemented},
		{"message longer than ttrpc allows", frame(1, 1, make([]byte, 5<<20)), codes.ResourceExhausted},
		{"unknown service", frame(1, 1, wire.Marshal(&wire.Request{Service: "x", Method: "y"})), codes.Unimplemented},
	} {
		conn := dial()
		if _, err := conn.Write(test.send); err != nil {
			t.Errorf("%s: %v", test.what, err)
		}
		if test.want != codes.OK {
			head := make([]byte, 10)
			if _, err := io.ReadFull(conn, head); err != nil {
				t.Errorf("%s: %v", test.what, err)
			}
			body := make([]byte, binary.BigEndian.Uint32(head))
			var r wire.Response
			if _, err := io.ReadFull(conn, body); err != nil {
				t.Errorf("%s: %v", test.what, err)
			} else if err := wire.Unmarshal(body, &r); err != nil || codes.Code(r.Status.Code) != test.want {
				t.Errorf("%s: %+v, %v; want code %v", test.what, r.Status, err, test.want)
			}
		}
		conn.Close()
	}
	// A client that goes away in the middle of a call takes nothing with it.
	conn := dial()
	gone := ttrpc.NewClient(conn)
	ctx, cancel := context.WithCancel(n.ctx())
	waiting := make(chan error)
	go func() {
		_, err := taskapi.NewTTRPCTaskClient(gone).Wait(ctx, &taskapi.WaitRequest{ID: "c"})
		waiting <- err
	}()
	conn.Close()
	if err := <-waiting; err == nil {
		t.Error("a call over a closed connection was answered")
	}
	cancel()
	if r, err := b.State(n.ctx(), &taskapi.StateRequest{ID: "c"}); err != nil || r.Pid != b.pid {
		t.Errorf("state afterwards: %v, %v", r, err)
	}
	b.remove()
}

// A full disk costs the log its lines, and the container nothing.
func TestFullDisk(t *testing.T) {
	n := newNode(t)
	disk := filepath.Join(n.dir, "disk")
	n.must(os.Mkdir(disk, 0o700))
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a small disk: %v", err)
	}
	defer unix.Unmount(disk, unix.MNT_DETACH)
	file := filepath.Join(disk, "log")
	b := n.define("c", n.spec("c", "sh", "-c", "dd if=/dev/zero bs=4096 count=100 2>/dev/null; exit 6"))
	n.must(b.create(func(r *taskapi.CreateTaskRequest) { r.Stdout = "file://" + file }))
	n.must(b.begin(""))
	if got := b.wait(""); got != 6 {
		t.Errorf("status %d", got)
	}
	n.must(b.delete(""))
	if info, err := os.Stat(file); err != nil || info.Size() < 32<<10 {
		t.Errorf("what had room is not there: %v, %v", info, err)
	}
	wait.Until(n.t, "a line on it in the log", func() bool { return strings.Contains(n.logged(), "no space left") })
	// Nor can anything be written into a bundle there.
	full := b.join("d", n.spec("d", "true"))
	small := filepath.Join(disk, "d")
	if err := os.Mkdir(small, 0o700); err == nil {
		text, err := os.ReadFile(filepath.Join(full.dir, "config.json"))
		n.must(err)
		os.Remove(file)
		n.must(os.WriteFile(filepath.Join(small, "config.json"), text, 0o600))
		fill(t, disk)
		n.code("bundle on a full disk", full.create(func(r *taskapi.CreateTaskRequest) { r.Bundle = small }), codes.Unknown, "no space left")
	}
	b.shutdown()
	b.gone()
}

func fill(t testing.TB, disk string) {
	t.Helper()
	f, err := os.Create(filepath.Join(disk, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return
		}
	}
}
