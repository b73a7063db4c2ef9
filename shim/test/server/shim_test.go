// The tests of this directory run the built shim as containerd does, and speak to
// it with containerd's own generated clients; containerd itself is played by the
// test, which gives it bundles, takes its events and reads its log.
package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/shim/reaper"
	"github.com/berth-runtime/berth/test/harness"
	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
)

const namespace = "berth-test"

// buildShim gives the shim to be tested: the one beside BERTH_BIN, if that is set,
// else one that it builds.
var buildShim = sync.OnceValues(func() (string, error) {
	if berth := os.Getenv("BERTH_BIN"); berth != "" {
		return filepath.Join(filepath.Dir(berth), "containerd-shim-berth-v2"), nil
	}
	dir, err := os.MkdirTemp("", "berth-shim-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "containerd-shim-berth-v2")
	defer children.Hold()()
	return path, harness.Build("cmd/containerd-shim-berth-v2", path)
})

// children waits for the shims, and for what a killed one leaves behind: ours to
// reap, as it would be containerd's. As long as nobody does, a container's first
// process cannot end.
var children *reaper.Reaper

func TestMain(m *testing.M) {
	harness.OwnMounts()
	var err error
	if children, err = reaper.Start(); err != nil {
		panic(err)
	}
	code := m.Run()
	if path, err := buildShim(); err == nil && os.Getenv("BERTH_BIN") == "" {
		os.RemoveAll(filepath.Dir(path))
	}
	os.RemoveAll(othersDir)
	os.Exit(code)
}

// box is a container in a shim.
type box struct {
	*shim
	id, dir string
	pid     uint32
}

// rootfs are the mounts of a container's root.
func (n *node) rootfs() []*types.Mount {
	return []*types.Mount{{Type: "bind", Source: n.root, Options: []string{"rbind"}}}
}

// define makes a bundle, and a shim for it.
func (n *node) define(id string, spec *specs.Spec) *box {
	n.t.Helper()
	dir := n.bundle(id, spec)
	return &box{shim: n.start(id, dir), id: id, dir: dir}
}

// join makes a bundle for a container that goes to a shim that is there.
func (s *shim) join(id string, spec *specs.Spec) *box {
	s.n.t.Helper()
	return &box{shim: s, id: id, dir: s.n.bundle(id, spec)}
}

// address is where the container's shim listens.
func (b *box) address() string {
	b.n.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "address"))
	b.n.must(err)
	return string(text)
}

func (b *box) request() *taskapi.CreateTaskRequest {
	return &taskapi.CreateTaskRequest{ID: b.id, Bundle: b.dir, Rootfs: b.n.rootfs(), Options: b.n.options}
}

func (b *box) create(change ...func(*taskapi.CreateTaskRequest)) error {
	r := b.request()
	for _, c := range change {
		c(r)
	}
	answer, err := b.Create(b.n.ctx(), r)
	b.pid = answer.GetPid()
	return err
}

func (b *box) begin(exec string) error {
	r, err := b.Start(b.n.ctx(), &taskapi.StartRequest{ID: b.id, ExecID: exec})
	if err == nil && exec == "" {
		b.pid = r.Pid
	}
	return err
}

// run makes a container that runs.
func (n *node) run(id string, args ...string) *box {
	n.t.Helper()
	b := n.define(id, n.spec(id, args...))
	n.must(b.create())
	n.must(b.begin(""))
	return b
}

func (b *box) kill(signal uint32) error {
	_, err := b.Kill(b.n.ctx(), &taskapi.KillRequest{ID: b.id, Signal: signal, All: signal == 9})
	return err
}

func (b *box) wait(exec string) uint32 {
	b.n.t.Helper()
	r, err := b.Wait(b.n.ctx(), &taskapi.WaitRequest{ID: b.id, ExecID: exec})
	b.n.must(err)
	return r.ExitStatus
}

func (b *box) delete(exec string) error {
	_, err := b.Delete(b.n.ctx(), &taskapi.DeleteRequest{ID: b.id, ExecID: exec})
	return err
}

// remove ends a container, and its shim if that has no other.
func (b *box) remove() {
	b.n.t.Helper()
	if err := b.kill(9); err != nil && status.Code(err) != codes.NotFound {
		b.n.t.Errorf("kill %s: %v", b.id, err)
	}
	b.wait("")
	b.n.must(b.delete(""))
	b.shutdown()
}

func (s *shim) shutdown() {
	s.n.t.Helper()
	_, err := s.Shutdown(s.n.ctx(), &taskapi.ShutdownRequest{})
	s.n.must(err)
}

// gone waits for the end of the shim.
func (s *shim) gone() {
	s.n.t.Helper()
	if s.client != nil {
		s.client.Close() // a shim that leaves waits a little for that
	}
	wait.Until(s.n.t, fmt.Sprintf("the end of shim %d", s.pid), s.ended)
}

// ended reports whether the shim has ended and has been waited for.
func (s *shim) ended() bool { return unix.PidfdSendSignal(s.pidfd, 0, nil, 0) == unix.ESRCH }

func (s *shim) goneOrKilled() {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if s.ended() {
			return
		}
	}
	s.n.t.Errorf("left: shim %d", s.pid)
	unix.PidfdSendSignal(s.pidfd, unix.SIGKILL, nil, 0)
}

func alive(pid uint32) bool { return syscall.Kill(int(pid), 0) == nil }

// addExec records a process to be started in the container.
func (b *box) addExec(id string, args ...string) error { return b.addExecTo(id, "", args...) }

// addExecTo is for one whose output goes to a FIFO.
func (b *box) addExecTo(id, stdout string, args ...string) error {
	b.n.t.Helper()
	process, err := json.Marshal(&specs.Process{Args: args, Cwd: "/", Env: []string{"PATH=/bin"}})
	b.n.must(err)
	_, err = b.Exec(b.n.ctx(), &taskapi.ExecProcessRequest{ID: b.id, ExecID: id, Stdout: stdout, Spec: &anypb.Any{Value: process}})
	return err
}

// kill9 kills the shim, and waits until it is gone.
func (s *shim) kill9() {
	s.n.t.Helper()
	s.n.must(unix.Kill(s.pid, unix.SIGKILL))
	s.gone()
}

// hierarchies are patterns of the cgroup hierarchies' roots.
func hierarchies() []string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return []string{"/sys/fs/cgroup"}
	}
	return []string{"/sys/fs/cgroup/*"}
}
