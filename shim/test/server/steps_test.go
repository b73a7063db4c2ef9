package server_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	bootstrapapi "github.com/containerd/containerd/api/runtime/bootstrap/v1"
	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/ttrpc"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/shim/reaper"
	"github.com/berth-runtime/berth/test/harness"
)

// buildFault builds test/fault, which kills a process after a step of it.
var buildFault = sync.OnceValues(func() (string, error) {
	shim, err := buildShim()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(shim), "fault")
	cmd := exec.Command("go", "build", "-o", path, "github.com/berth-runtime/berth/test/fault")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	defer children.Hold()()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build test/fault: %w\n%s", err, out)
	}
	return path, nil
})

// Each call by which the shim changes something, from its start to its end, is its last one in some
// run: SIGKILL comes after it, and one delete, as containerd calls it then, leaves nothing. So it
// is for what an init does on the shim's behalf. The shim's threads make their calls in no fixed
// order, so that the steps are counted through rather than named; the runs go on until a life has
// no more of them.
func TestShimIsKilledAfterEachStep(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("needs amd64: test/fault changes registers by hand")
	}
	var next, killed atomic.Int64
	var over atomic.Bool
	t.Run("", func(t *testing.T) { // until both have ended
		for range 2 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				n := newNode(t)
				keeper := n.run("keeper", "sleep", "1000")
				for !over.Load() && !t.Failed() {
					if n.dieAfter(int(next.Add(1))) {
						killed.Add(1)
					} else {
						over.Store(true)
					}
				}
				if r, err := keeper.State(n.ctx(), &taskapi.StateRequest{ID: "keeper"}); err != nil || r.Pid != keeper.pid || !alive(keeper.pid) {
					t.Errorf("the container that nothing was done to: %v, %v", r, err)
				}
				keeper.remove()
			})
		}
	})
	// Far less than one life has: the calls of the engine alone are more.
	if killed.Load() < 100 {
		t.Errorf("only %d steps were found", killed.Load())
	}
	t.Logf("%d steps", killed.Load())
	harness.Report(t, "shim steps", killed.Load())
}

// startUnder executes the shim's start under test/fault, with these options of that, and gives what
// the shim answers. What both of them say otherwise is in the node's file "said".
func (n *node) startUnder(id, dir string, options ...string) (*reaper.Child, *os.File) {
	n.t.Helper()
	fault, err := buildFault()
	n.must(err)
	out, write, err := os.Pipe()
	n.must(err)
	in, err := os.Open(n.paramsFile(id))
	n.must(err)
	defer in.Close()
	said, err := os.Create(filepath.Join(n.dir, "said"))
	n.must(err)
	defer said.Close()
	argv := append(append(append([]string{fault}, options...), "--", n.binary), n.args(id, dir, "start")...)
	env := append([]string{"TTRPC_ADDRESS=" + n.ttrpcSocket(), "MAX_SHIM_VERSION=2", "GOMAXPROCS=2"}, os.Environ()...)
	tracer, err := children.Start(fault, argv, &syscall.ProcAttr{Dir: dir, Env: env, Files: []uintptr{in.Fd(), write.Fd(), said.Fd()}}, nil)
	write.Close()
	n.must(err)
	return tracer, out
}

// dieAfter leads a life that ends after a step. It reports false where it has fewer steps.
func (n *node) dieAfter(step int) bool {
	n.t.Helper()
	id := fmt.Sprint("c", step)
	spec := n.spec(id, "sleep", "1000")
	spec.Linux.Resources = &specs.LinuxResources{}
	dir := n.bundle(id, spec)
	hit, pids := filepath.Join(n.dir, "hit"), filepath.Join(n.dir, "pids")
	if err := os.Remove(hit); err != nil && !errors.Is(err, os.ErrNotExist) {
		n.t.Fatal(err)
	}
	tracer, out := n.startUnder(id, dir, "-step", strconv.Itoa(step), "-follow", "-hit", hit, "-pids", pids)
	defer out.Close()
	answer, err := io.ReadAll(out) // until the start has ended
	n.must(err)
	b := &box{shim: &shim{n: n}, id: id, dir: dir}
	lived := b.liveUntilKilled(answer)
	exit := tracer.Wait()
	at, err := os.ReadFile(hit)
	if errors.Is(err, os.ErrNotExist) {
		if lived != nil {
			n.t.Errorf("%d steps, and none was the last: %v", step, lived)
		}
		return false
	}
	n.must(err)
	if exit.Status == 126 {
		text, _ := os.ReadFile(filepath.Join(n.dir, "said"))
		n.t.Fatalf("killed after step %d, %s: %s", step, at, text)
	}
	n.cleanUp(b)
	n.nothingLeft(id)
	n.allGone(pids, fmt.Sprintf("a kill after step %d, %s", step, at))
	if left, _ := filepath.Glob(filepath.Join(n.dir, "s/*")); len(left) > 1 { // the other one is the keeper's
		n.t.Errorf("left: %d sockets", len(left)-1)
	}
	if n.t.Failed() {
		n.t.Logf("killed after step %d: %s", step, at)
	}
	return true
}

// allGone waits for the end of each process that is named in a file.
func (n *node) allGone(pids, after string) {
	n.t.Helper()
	text, err := os.ReadFile(pids)
	n.must(err)
	for _, word := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(word)
		n.must(err)
		wait.Until(n.t, fmt.Sprintf("the end of process %d after %s", pid, after), func() bool { return unix.Kill(pid, 0) == unix.ESRCH })
	}
}

// paramsFile is a file with what containerd 2.3 gives a start on its standard input.
func (n *node) paramsFile(id string) string {
	n.t.Helper()
	path := filepath.Join(n.dir, "params")
	n.must(os.WriteFile(path, n.params(id), 0o600))
	return path
}

// socketIn is the shim's socket, as a start answers it; "" for what is no such answer.
func socketIn(answer []byte) string {
	var r bootstrapapi.BootstrapResult
	if err := proto.Unmarshal(answer, &r); err != nil {
		return ""
	}
	return strings.TrimPrefix(r.Address, "unix://")
}

// liveUntilKilled makes each call that a container's life has, and ends with the error of the first
// that is not answered.
func (b *box) liveUntilKilled(answer []byte) error {
	conn, err := net.Dial("unix", socketIn(answer))
	if err != nil {
		return err
	}
	defer conn.Close()
	client := ttrpc.NewClient(conn)
	defer client.Close()
	b.TTRPCTaskService = taskapi.NewTTRPCTaskClient(client)
	ctx, id := b.n.ctx(), b.id
	for _, call := range []func() error{
		func() error { return b.create() },
		func() error { return b.begin("") },
		func() error { return b.addExec("e", "sleep", "1000") },
		func() error { return b.begin("e") },
		func() error { _, err := b.Pause(ctx, &taskapi.PauseRequest{ID: id}); return err },
		func() error { _, err := b.Resume(ctx, &taskapi.ResumeRequest{ID: id}); return err },
		func() error {
			limits := &anypb.Any{Value: []byte(`{"pids":{"limit":50}}`)}
			_, err := b.Update(ctx, &taskapi.UpdateTaskRequest{ID: id, Resources: limits})
			return err
		},
		func() error {
			_, err := b.Kill(ctx, &taskapi.KillRequest{ID: id, ExecID: "e", Signal: uint32(unix.SIGKILL)})
			return err
		},
		func() error { _, err := b.Wait(ctx, &taskapi.WaitRequest{ID: id, ExecID: "e"}); return err },
		func() error { return b.delete("e") },
		func() error { return b.kill(uint32(unix.SIGKILL)) },
		func() error { _, err := b.Wait(ctx, &taskapi.WaitRequest{ID: id}); return err },
		func() error { return b.delete("") },
		func() error { _, err := b.Shutdown(ctx, &taskapi.ShutdownRequest{}); return err },
	} {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}
