// The tests of this folder run the built shim as containerd does, and speak to
// it with containerd's own generated clients; containerd itself is played by the
// test, which gives it bundles, takes its events and reads its log.
package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	bootstrapapi "github.com/containerd/containerd/api/runtime/bootstrap/v1"
	sandboxapi "github.com/containerd/containerd/api/runtime/sandbox/v1"
	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types"
	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/ttrpc"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	ours "github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/reaper"
	"github.com/berth-runtime/berth/test/harness"
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
	os.Exit(code)
}

// node plays containerd, for one test.
type node struct {
	t       testing.TB
	dir     string
	binary  string
	root    string // root file system of all containers
	cgroup  string
	env     []string
	flags   []string // more of them for start
	deaf    bool     // nobody reads the logs
	options *anypb.Any

	mu     sync.Mutex
	events []string
	log    bytes.Buffer
	shims  []*shim // those that have served
}

func newNode(t testing.TB) *node {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containers of a shim need root")
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("busybox is not installed")
	}
	binary, err := buildShim()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "bs") // short, as sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, dir: dir, binary: binary, root: filepath.Join(dir, "busybox"), cgroup: "/" + filepath.Base(dir)}
	n.options = n.any("containerd.runc.v1.Options", &runcoptions.Options{Root: filepath.Join(dir, "engine")})
	for _, sub := range []string{"bin", "proc", "sys", "dev", "tmp"} {
		n.must(os.MkdirAll(filepath.Join(n.root, sub), 0o755))
	}
	program, err := os.ReadFile(busybox)
	n.must(err)
	n.must(os.WriteFile(filepath.Join(n.root, "bin/busybox"), program, 0o755))
	for _, applet := range []string{"sh", "sleep", "true", "cat", "echo", "dd", "seq", "head", "ls", "hostname", "id", "readlink", "kill", "mount", "grep", "ps", "tail", "printf"} {
		n.must(os.Symlink("busybox", filepath.Join(n.root, "bin", applet)))
	}
	n.serveEvents()
	t.Cleanup(n.end)
	return n
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) any(url string, m proto.Message) *anypb.Any {
	n.t.Helper()
	b, err := proto.Marshal(m)
	n.must(err)
	return &anypb.Any{TypeUrl: url, Value: b}
}

func (n *node) ttrpcSocket() string { return filepath.Join(n.dir, "c.sock.ttrpc") }

// serveEvents takes events, each as one line.
func (n *node) serveEvents() {
	listener, err := ours.Listen(n.ttrpcSocket())
	n.must(err)
	server := ours.NewServer(func(string) {})
	server.Register("containerd.services.events.ttrpc.v1.Events", map[string]ours.Handler{
		"Forward": func(_ context.Context, payload []byte) (wire.Message, error) {
			var r wire.ForwardRequest
			if err := wire.Unmarshal(payload, &r); err != nil {
				return nil, err
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			n.events = append(n.events, describe(r.Envelope))
			return &wire.Empty{}, nil
		},
	})
	go server.Serve(listener)
	n.t.Cleanup(server.Close)
}

func describe(e *wire.Envelope) string {
	word := strings.TrimPrefix(e.Topic, "/tasks/")
	switch word {
	case "exit":
		var m wire.TaskExit
		wire.Unmarshal(e.Event.Value, &m)
		return fmt.Sprintf("%s exit %s %d", m.ContainerID, m.ID, m.ExitStatus)
	default:
		// The first field of all of them is the container's id.
		var m wire.TaskOOM
		wire.Unmarshal(e.Event.Value, &m)
		return m.ContainerID + " " + word
	}
}

// seen gives the events of a container.
func (n *node) seen(id string) (list []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.events {
		if rest, ok := strings.CutPrefix(e, id+" "); ok {
			list = append(list, rest)
		}
	}
	return list
}

func (n *node) wantEvents(id string, want ...string) {
	n.t.Helper()
	n.eventually("the events of "+id, func() bool { return len(n.seen(id)) >= len(want) })
	if got := n.seen(id); strings.Join(got, ", ") != strings.Join(want, ", ") {
		n.t.Errorf("events of %s: %q\nwant %q", id, got, want)
	}
}

// eventually waits for something that nothing can be asked to wait for.
func (n *node) eventually(what string, is func() bool) {
	n.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if is() {
			return
		}
	}
	n.t.Fatalf("not within 30 s: %s", what)
}

func (n *node) logged() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.String()
}

// bundle makes a bundle with the log of a shim in it; a nil spec makes no config.json.
func (n *node) bundle(id string, spec *specs.Spec) string {
	n.t.Helper()
	dir := filepath.Join(n.dir, "bundles", id)
	n.must(os.MkdirAll(filepath.Join(dir, "rootfs"), 0o700))
	if spec != nil {
		text, err := json.Marshal(spec)
		n.must(err)
		n.must(os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600))
	}
	n.must(unix.Mkfifo(filepath.Join(dir, "log"), 0o600))
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_RDWR|unix.O_NONBLOCK, 0)
	n.must(err)
	n.t.Cleanup(func() { log.Close() })
	if n.deaf {
		return dir
	}
	go func() {
		buf := make([]byte, 64<<10)
		for {
			k, err := log.Read(buf)
			if err != nil {
				return
			}
			n.mu.Lock()
			n.log.Write(buf[:k])
			n.mu.Unlock()
		}
	}()
	return dir
}

func (n *node) spec(id string, args ...string) *specs.Spec {
	return &specs.Spec{
		Version: "1.2.0",
		Process: &specs.Process{Cwd: "/", Env: []string{"PATH=/bin"}, Args: args, NoNewPrivileges: true},
		Root:    &specs.Root{Path: "rootfs"},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"mode=755", "nosuid"}},
			{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"newinstance", "ptmxmode=0666", "mode=0620"}},
			{Destination: "/tmp", Type: "tmpfs", Source: "tmpfs"},
		},
		Linux: &specs.Linux{
			CgroupsPath: n.cgroup + "/" + id,
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace},
			},
		},
	}
}

// call executes the shim, and gives all that it writes, on either stream.
func (n *node) call(dir string, stdin []byte, args ...string) ([]byte, error) {
	n.t.Helper()
	in, err := os.CreateTemp(n.dir, "stdin")
	n.must(err)
	defer os.Remove(in.Name())
	defer in.Close()
	_, err = in.Write(stdin)
	n.must(err)
	_, err = in.Seek(0, io.SeekStart)
	n.must(err)
	out, write, err := os.Pipe()
	n.must(err)
	defer out.Close()
	// Of two values of one variable the first counts.
	env := append(append([]string{"TTRPC_ADDRESS=" + n.ttrpcSocket(), "MAX_SHIM_VERSION=2", "GOMAXPROCS=2"}, n.env...), os.Environ()...)
	child, err := children.Start(n.binary, append([]string{n.binary}, args...), &syscall.ProcAttr{
		Dir: dir, Env: env, Files: []uintptr{in.Fd(), write.Fd(), write.Fd()},
	}, nil)
	write.Close()
	n.must(err)
	text, err := io.ReadAll(out) // to the end, which a server must not hold up
	n.must(err)
	if exit := child.Wait(); exit.Status != 0 {
		return nil, fmt.Errorf("status %d: %s", exit.Status, text)
	}
	return text, nil
}

func (n *node) args(id, dir string, rest ...string) []string {
	return append([]string{"-namespace", namespace, "-address", filepath.Join(n.dir, "c.sock"), "-publish-binary", "containerd", "-id", id, "-bundle", dir}, rest...)
}

// params is what containerd 2.3 gives a start on its standard input.
func (n *node) params(id string) []byte {
	n.t.Helper()
	sockets := filepath.Join(n.dir, "s")
	text, err := proto.Marshal(&bootstrapapi.BootstrapParams{
		InstanceID: id, Namespace: namespace, ContainerdTtrpcAddress: n.ttrpcSocket(),
		ContainerdGrpcAddress: filepath.Join(n.dir, "c.sock"), SocketDir: &sockets,
		Extensions: []*bootstrapapi.Extension{{Value: n.options}},
	})
	n.must(err)
	return text
}

// tryStart has a shim started for a bundle, in the way of containerd 2.3.
func (n *node) tryStart(id, dir string) (address string, err error) {
	n.t.Helper()
	out, err := n.call(dir, n.params(id), n.args(id, dir, append(n.flags, "start")...)...)
	if err != nil {
		return "", fmt.Errorf("start: %w", err)
	}
	var r bootstrapapi.BootstrapResult
	n.must(proto.Unmarshal(out, &r))
	if r.Version != 3 || r.Protocol != "ttrpc" {
		n.t.Fatalf("answer of start: %v", &r)
	}
	return r.Address, nil
}

// shim is a connection to a running shim.
type shim struct {
	taskapi.TTRPCTaskService
	sandbox sandboxapi.TTRPCSandboxService
	client  *ttrpc.Client
	n       *node
	pid     int
	pidfd   int // a pid can be another's by the time that it is looked for
}

func (n *node) start(id, dir string) *shim {
	n.t.Helper()
	address, err := n.tryStart(id, dir)
	n.must(err)
	return n.connect(address)
}

func (n *node) connect(address string) *shim {
	n.t.Helper()
	conn, err := net.Dial("unix", strings.TrimPrefix(address, "unix://"))
	n.must(err)
	client := ttrpc.NewClient(conn)
	n.t.Cleanup(func() { client.Close() })
	s := &shim{TTRPCTaskService: taskapi.NewTTRPCTaskClient(client), sandbox: sandboxapi.NewTTRPCSandboxClient(client), client: client, n: n}
	r, err := s.Connect(n.ctx(), &taskapi.ConnectRequest{})
	n.must(err)
	s.pid = int(r.ShimPid)
	s.pidfd, err = unix.PidfdOpen(s.pid, 0)
	n.must(err)
	n.mu.Lock()
	n.shims = append(n.shims, s)
	n.mu.Unlock()
	return s
}

// ctx bounds a call, so that a test that hangs says where.
func (n *node) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	n.t.Cleanup(cancel)
	return ctx
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
	s.n.eventually(fmt.Sprintf("the end of shim %d", s.pid), s.ended)
}

// ended reports whether the shim has ended and has been waited for.
func (s *shim) ended() bool { return unix.PidfdSendSignal(s.pidfd, 0, nil, 0) == unix.ESRCH }

// end looks for what is left behind.
func (n *node) end() {
	n.t.Helper()
	for _, s := range n.shims {
		s.goneOrKilled()
		unix.Close(s.pidfd)
	}
	containers, _ := filepath.Glob(filepath.Join(n.dir, "engine/*/*"))
	for _, path := range containers {
		id := filepath.Base(path)
		if id == harness.RootMark {
			continue // the folder's own mark
		}
		dir := filepath.Join(n.dir, "bundles", id)
		n.t.Errorf("left: container %s", id)
		n.call(dir, nil, n.args(id, dir, "delete")...)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	n.must(err)
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], n.dir+"/") {
			n.t.Errorf("left: mount on %s", f[4])
			unix.Unmount(f[4], unix.MNT_DETACH)
		}
	}
	for _, pattern := range hierarchies() {
		tops, _ := filepath.Glob(pattern + n.cgroup)
		for _, top := range tops {
			inside, _ := filepath.Glob(top + "/*/cgroup.procs")
			for _, procs := range inside {
				n.t.Errorf("left: cgroup %s", filepath.Dir(procs))
				os.Remove(filepath.Dir(procs))
			}
			os.Remove(top)
		}
	}
	sockets, _ := filepath.Glob(filepath.Join(n.dir, "s/*"))
	for _, path := range sockets {
		n.t.Errorf("left: socket %s", path)
	}
	if n.t.Failed() {
		n.t.Logf("log of the shims:\n%s", n.logged())
	}
	n.must(os.RemoveAll(n.dir))
}

// cleanUp has the delete of a killed shim's container run, as containerd does,
// and checks that nothing of it is left.
func (n *node) cleanUp(b *box) *taskapi.DeleteResponse {
	n.t.Helper()
	out, err := n.call(b.dir, nil, n.args(b.id, b.dir, "delete")...)
	if err != nil {
		n.t.Fatalf("delete: %v", err)
	}
	var r taskapi.DeleteResponse
	if err := proto.Unmarshal(out, &r); err != nil {
		n.t.Fatalf("delete answers %q: %v", out, err)
	}
	n.dead(b)
	if _, err := os.Lstat(filepath.Join(n.dir, "engine", namespace, b.id)); err == nil {
		n.t.Errorf("state of container %s is left", b.id)
	}
	return &r
}

// dead waits until the first process of a container that was killed is reaped.
func (n *node) dead(b *box) {
	n.t.Helper()
	n.eventually(fmt.Sprintf("the end of process %d of container %s", b.pid, b.id), func() bool { return b.pid == 0 || !alive(b.pid) })
}

func (s *shim) goneOrKilled() {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if s.ended() {
			return
		}
	}
	s.n.t.Errorf("left: shim %d", s.pid)
	unix.PidfdSendSignal(s.pidfd, unix.SIGKILL, nil, 0)
}

// code checks what an error is over the wire.
func (n *node) code(what string, err error, want codes.Code, text ...string) {
	n.t.Helper()
	if status.Code(err) != want {
		n.t.Errorf("%s: %v, want %v", what, err, want)
		return
	}
	for _, part := range text {
		if !strings.Contains(err.Error(), part) {
			n.t.Errorf("%s: %q does not contain %q", what, err, part)
		}
	}
}

// pipe is a FIFO that a test reads.
type pipe struct {
	path string
	file *os.File
	mu   sync.Mutex
	text bytes.Buffer
	done chan struct{}
}

func (n *node) pipe(name string) *pipe {
	n.t.Helper()
	p := &pipe{path: filepath.Join(n.dir, name), done: make(chan struct{})}
	n.must(unix.Mkfifo(p.path, 0o600))
	var err error
	p.file, err = os.OpenFile(p.path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	n.must(err)
	n.t.Cleanup(func() { p.file.Close() })
	return p
}

// read collects what comes, until the shim closes its end.
func (p *pipe) read() *pipe {
	go func() {
		defer close(p.done)
		in := bufio.NewReader(p.file)
		for started := false; ; {
			line, err := in.ReadBytes('\n')
			p.mu.Lock()
			p.text.Write(line)
			p.mu.Unlock()
			started = started || len(line) > 0
			if errors.Is(err, io.EOF) && !started {
				time.Sleep(time.Millisecond) // nobody has opened it for writing yet
				continue
			}
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *pipe) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func alive(pid uint32) bool { return syscall.Kill(int(pid), 0) == nil }

// addExec records a process to be started in the container.
func (b *box) addExec(id string, args ...string) error {
	b.n.t.Helper()
	process, err := json.Marshal(&specs.Process{Args: args, Cwd: "/", Env: []string{"PATH=/bin"}})
	b.n.must(err)
	_, err = b.Exec(b.n.ctx(), &taskapi.ExecProcessRequest{ID: b.id, ExecID: id, Spec: &anypb.Any{Value: process}})
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
