package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	bootstrapapi "github.com/containerd/containerd/api/runtime/bootstrap/v1"
	sandboxapi "github.com/containerd/containerd/api/runtime/sandbox/v1"
	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/ttrpc"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
)

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
