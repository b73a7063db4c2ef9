package server_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/test/harness"
)

// Before each call of the shim and its inits, a client of its socket asks for what it must not get,
// or says what is no request. The container's life goes on as if there were no such client, and the
// shim neither falls over nor keeps any of it.
func TestHostileClientAtEachStep(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("needs amd64: test/fault changes registers by hand")
	}
	n := newNode(t)
	keeper := n.run("keeper", "sleep", "1000")
	said := 0
	for _, first := range []int{0, 7, 14} { // so that each step has other words in each life
		said += n.liveBesideClient(first)
	}
	if r, err := keeper.State(n.ctx(), &taskapi.StateRequest{ID: "keeper"}); err != nil || r.Pid != keeper.pid || !alive(keeper.pid) {
		t.Errorf("the container that nothing was done to: %v, %v", r, err)
	}
	keeper.remove()
	if said < 1000 {
		t.Errorf("only %d steps at which something was said", said)
	}
	t.Logf("%d steps at which something was said", said)
	harness.Report(t, "client words", said)
}

// hostileWords are what the client says, a connection each. None asks for what ends the container:
// the client of a shim may do that.
func hostileWords(id string) [][]byte {
	ask := func(service, method string, m proto.Message) []byte {
		payload, err := proto.Marshal(m)
		if err != nil {
			panic(err)
		}
		body := wire.Marshal(&wire.Request{Service: service, Method: method, Payload: payload, TimeoutNano: 1e9})
		b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
		b = binary.BigEndian.AppendUint32(b, 1)
		return append(append(b, 1, 1), body...)
	}
	task := func(method string, m proto.Message) []byte { return ask("containerd.task.v3.Task", method, m) }
	garbage := &anypb.Any{TypeUrl: "types.containerd.io/opencontainers/runtime-spec/1/Process", Value: []byte("\xff{")}
	return [][]byte{
		task("State", &taskapi.StateRequest{ID: id, ExecID: "nobody"}),
		task("Create", &taskapi.CreateTaskRequest{ID: id, Bundle: "/none"}),
		task("Create", &taskapi.CreateTaskRequest{ID: "../" + id}),
		task("Exec", &taskapi.ExecProcessRequest{ID: id, ExecID: "../x", Spec: garbage}),
		task("Exec", &taskapi.ExecProcessRequest{ID: id, ExecID: "e2"}),
		task("Start", &taskapi.StartRequest{ID: id, ExecID: "nobody"}),
		task("Kill", &taskapi.KillRequest{ID: id, Signal: 1 << 31}),
		task("Kill", &taskapi.KillRequest{ID: id, ExecID: "nobody", Signal: 9}),
		task("Delete", &taskapi.DeleteRequest{ID: id, ExecID: "nobody"}),
		task("Update", &taskapi.UpdateTaskRequest{ID: id, Resources: garbage}),
		task("ResizePty", &taskapi.ResizePtyRequest{ID: id, Width: 1<<32 - 1, Height: 1<<32 - 1}),
		task("CloseIO", &taskapi.CloseIORequest{ID: id, ExecID: "nobody", Stdin: true}),
		task("Checkpoint", &taskapi.CheckpointTaskRequest{ID: id, Path: "/proc/none", Options: garbage}),
		task("Wait", &taskapi.WaitRequest{ID: id}), // and hang up
		task("Stats", &taskapi.StatsRequest{ID: id}),
		task("Pids", &taskapi.PidsRequest{ID: id}),
		ask("containerd.runtime.sandbox.v1.Sandbox", "StartSandbox", &taskapi.StateRequest{ID: id}),
		ask("nobody", "Nothing", &taskapi.StateRequest{}),
		{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 1, 1},
		{0, 0, 0, 8, 0, 0, 0, 1, 1, 1, 0xff},
		{0, 0, 0, 0, 0, 0, 0, 2, 9, 0xff},
		[]byte(strings.Repeat("\x00", 100)),
	}
}

// liveBesideClient leads a life in whose steps the client says one word after another, from the
// first on.
func (n *node) liveBesideClient(first int) (said int) {
	t := n.t
	t.Helper()
	id := fmt.Sprint("h", first)
	spec := n.spec(id, "sleep", "1000")
	spec.Linux.Resources = &specs.LinuxResources{}
	dir := n.bundle(id, spec)
	words := hostileWords(id)
	steps := filepath.Join(n.dir, "steps")
	stops, err := harness.ListenStops(steps)
	n.must(err)
	defer stops.Close()
	tracer, out := n.startUnder(id, dir, "-tell", steps, "-follow")
	defer out.Close()
	socket := make(chan string, 1)
	lived := make(chan error, 1)
	var failed atomic.Bool
	b := &box{shim: &shim{n: n}, id: id, dir: dir}
	go func() {
		answer, err := io.ReadAll(out) // until the start has ended
		if err == nil {
			socket <- socketIn(answer)
			err = b.liveUntilKilled(answer)
		}
		failed.Store(err != nil)
		lived <- err
	}()
	address := ""
	err = stops.Follow(func(s harness.Stop) {
		if failed.Load() {
			_ = unix.Kill(s.PID, unix.SIGKILL) // else it lives on, and there is always another step
			return
		}
		select {
		case address = <-socket:
		default:
		}
		if address == "" {
			return
		}
		conn, err := net.Dial("unix", address)
		if err != nil {
			return // not there any more, or as many wait already as may
		}
		defer conn.Close()
		// It does not wait for an answer: who would give it stands still.
		if _, err := conn.Write(words[(first+said)%len(words)]); err == nil {
			said++
		}
	})
	n.must(err)
	if err := <-lived; err != nil {
		t.Errorf("beside a hostile client: %v", err)
	}
	if exit := tracer.Wait(); exit.Status != 0 {
		t.Errorf("the shim ended with %+v", exit)
	}
	if text, err := os.ReadFile(filepath.Join(n.dir, "said")); err != nil || strings.Contains(string(text), "goroutine ") {
		t.Errorf("the shim says %v %s", err, text)
	}
	n.nothingLeft(id)
	if _, err := os.Lstat(filepath.Join(n.dir, "engine", namespace, id)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("state of container %s is left", id)
	}
	return said
}
