package server_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/berth-runtime/berth/internal/test/wait"
	ours "github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/test/harness"
	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

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
	wait.Until(n.t, "the events of "+id, func() bool { return len(n.seen(id)) >= len(want) })
	if got := n.seen(id); strings.Join(got, ", ") != strings.Join(want, ", ") {
		n.t.Errorf("events of %s: %q\nwant %q", id, got, want)
	}
}

func (n *node) logged() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.String()
}

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
			continue // the directory's own mark
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
	wait.Until(n.t, fmt.Sprintf("the end of process %d of container %s", b.pid, b.id), func() bool { return b.pid == 0 || !alive(b.pid) })
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
