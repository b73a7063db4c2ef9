package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	sandboxapi "github.com/containerd/containerd/api/runtime/sandbox/v1"
	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"

	"github.com/berth-runtime/berth/test/harness"
)

// podConfig is a PodSandboxConfig, by the field numbers of CRI's api.proto.
func podConfig(n *node, hostname string, sysctls map[string]string) *anypb.Any {
	entry := func(key, value string) []byte {
		b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), key)
		return protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), value)
	}
	field := func(b []byte, num protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
	}
	metadata := field(field(nil, 1, []byte("web")), 3, []byte("shop"))
	linux := field(nil, 1, []byte(n.cgroup)) // cgroup_parent
	for key, value := range sysctls {
		linux = field(linux, 3, entry(key, value))
	}
	pod := field(nil, 1, metadata)
	pod = field(pod, 2, []byte(hostname))
	pod = field(pod, 7, entry("team", "blue")) // annotations
	pod = field(pod, 8, linux)
	return &anypb.Any{TypeUrl: "runtime.v1.PodSandboxConfig", Value: pod}
}

// sandbox makes a sandbox as containerd's CRI does with sandboxer = "shim": there
// is no config.json and no root file system.
func (n *node) sandbox(id string) (*shim, string) {
	n.t.Helper()
	dir := n.bundle(id, nil)
	s := n.start(id, dir)
	_, err := s.sandbox.CreateSandbox(n.ctx(), &sandboxapi.CreateSandboxRequest{
		SandboxID: id, BundlePath: dir, Options: podConfig(n, "web-1", map[string]string{"kernel.shm_rmid_forced": "1"}),
		Annotations: map[string]string{"extra": "yes"},
	})
	n.must(err)
	return s, dir
}

// inPod is the spec of a container in a sandbox's namespaces.
func (n *node) inPod(id string, pid uint32, args ...string) *specs.Spec {
	s := n.spec(id, args...)
	s.Linux.Namespaces = []specs.LinuxNamespace{{Type: specs.MountNamespace}}
	for kind, file := range map[specs.LinuxNamespaceType]string{
		specs.PIDNamespace: "pid", specs.IPCNamespace: "ipc", specs.UTSNamespace: "uts", specs.NetworkNamespace: "net",
	} {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: kind, Path: fmt.Sprintf("/proc/%d/ns/%s", pid, file)})
	}
	return s
}

func TestSandbox(t *testing.T) {
	n := newNode(t)
	s, dir := n.sandbox("pod")
	ctx := n.ctx()
	state := func() *sandboxapi.SandboxStatusResponse {
		t.Helper()
		r, err := s.sandbox.SandboxStatus(ctx, &sandboxapi.SandboxStatusRequest{SandboxID: "pod", Verbose: true})
		n.must(err)
		return r
	}
	if r := state(); r.State != "SANDBOX_NOTREADY" {
		t.Errorf("created: %v", r)
	}
	_, err := s.sandbox.CreateSandbox(ctx, &sandboxapi.CreateSandboxRequest{SandboxID: "pod2", BundlePath: dir})
	n.code("second sandbox", err, codes.AlreadyExists)
	_, err = s.sandbox.StartSandbox(ctx, &sandboxapi.StartSandboxRequest{SandboxID: "other"})
	n.code("start of another", err, codes.NotFound)

	before := time.Now()
	started, err := s.sandbox.StartSandbox(ctx, &sandboxapi.StartSandboxRequest{SandboxID: "pod"})
	n.must(err)
	if started.Pid == 0 || started.CreatedAt.AsTime().Before(before) {
		t.Errorf("start: %v", started)
	}
	_, err = s.sandbox.StartSandbox(ctx, &sandboxapi.StartSandboxRequest{SandboxID: "pod"})
	n.code("second start", err, codes.FailedPrecondition)
	var spec specs.Spec
	if err := json.Unmarshal(started.Spec.GetValue(), &spec); err != nil || started.Spec.TypeUrl != wire.SpecURL {
		t.Errorf("spec: %v, %v", started.Spec, err)
	}
	for key, want := range map[string]string{"team": "blue", "extra": "yes", "io.kubernetes.cri.sandbox-name": "web", "io.kubernetes.cri.sandbox-namespace": "shop"} {
		if spec.Annotations[key] != want {
			t.Errorf("annotation %s is %q, want %q", key, spec.Annotations[key], want)
		}
	}
	if r := state(); r.State != "SANDBOX_READY" || r.Pid != started.Pid || !strings.Contains(r.Info["info"], dir) || r.ExitedAt.GetSeconds() > 0 {
		t.Errorf("started: %v", r)
	}
	platform, err := s.sandbox.Platform(ctx, &sandboxapi.PlatformRequest{SandboxID: "pod"})
	if n.must(err); platform.Platform.OS != "linux" || platform.Platform.Architecture != runtime.GOARCH {
		t.Errorf("platform: %v", platform)
	}
	_, err = s.sandbox.PingSandbox(ctx, &sandboxapi.PingRequest{SandboxID: "pod"})
	n.must(err)
	metrics, err := s.sandbox.SandboxMetrics(ctx, &sandboxapi.SandboxMetricsRequest{SandboxID: "pod"})
	if n.must(err); metrics.Metrics.GetID() != "pod" || !strings.HasSuffix(metrics.Metrics.GetData().GetTypeUrl(), ".Metrics") {
		t.Errorf("metrics: %v", metrics)
	}

	// A container of the pod sees the pod's name, network and processes, and its
	// orphans are reaped there.
	out := n.pipe("out").read()
	b := s.join("c", n.inPod("c", started.Pid, "sh", "-c",
		"hostname; ls /proc/1/root 2>/dev/null; cat /proc/sys/kernel/shm_rmid_forced; grep -c : /proc/net/dev; (sleep 0.2 & echo $! >/tmp/orphan); "+
			"while kill -0 $(cat /tmp/orphan) 2>/dev/null; do sleep 0.01; done; echo done; exec sleep 1000"))
	n.must(b.create(func(r *taskapi.CreateTaskRequest) { r.Stdout = out.path }))
	n.must(b.begin(""))
	wait.Until(n.t, "what the container says", func() bool { return strings.HasSuffix(out.String(), "done\n") })
	if got := out.String(); got != "web-1\ndev\npause\nproc\n1\n1\ndone\n" {
		t.Errorf("inside: %q", got)
	}
	// The end of a container leaves the pod as it is.
	quick := s.join("q", n.inPod("q", started.Pid, "true"))
	n.must(quick.create())
	n.must(quick.begin(""))
	quick.wait("")
	n.must(quick.delete(""))
	s.shutdown() // as containerd says after the delete of any task
	if r := state(); r.State != "SANDBOX_READY" {
		t.Errorf("after the end of a container: %v", r)
	}

	waited := make(chan *sandboxapi.WaitSandboxResponse)
	go func() {
		r, err := s.sandbox.WaitSandbox(ctx, &sandboxapi.WaitSandboxRequest{SandboxID: "pod"})
		if err != nil {
			t.Errorf("wait: %v", err)
		}
		waited <- r
	}()
	_, err = s.sandbox.StopSandbox(ctx, &sandboxapi.StopSandboxRequest{SandboxID: "pod"})
	n.must(err)
	if r := <-waited; r.GetExitStatus() != 137 || r.GetExitedAt().AsTime().Before(before) {
		t.Errorf("wait: %v", r)
	}
	if got := b.wait(""); got != 137 {
		t.Errorf("the container of a stopped pod ended with %d", got)
	}
	if r := state(); r.State != "SANDBOX_NOTREADY" || r.ExitedAt.AsTime().Before(before) {
		t.Errorf("stopped: %v", r)
	}
	_, err = s.sandbox.PingSandbox(ctx, &sandboxapi.PingRequest{SandboxID: "pod"})
	n.code("ping", err, codes.FailedPrecondition)
	_, err = s.sandbox.StopSandbox(ctx, &sandboxapi.StopSandboxRequest{SandboxID: "pod"})
	n.must(err) // again
	if _, err = s.sandbox.SandboxMetrics(ctx, &sandboxapi.SandboxMetricsRequest{SandboxID: "pod"}); err != nil {
		t.Errorf("metrics after the end: %v", err)
	}
	// The container was not deleted by its client.
	_, err = s.sandbox.ShutdownSandbox(ctx, &sandboxapi.ShutdownSandboxRequest{SandboxID: "pod"})
	n.must(err)
	s.gone()
	n.wantEvents("c", "create", "start", "exit c 137", "delete")
	if got := n.seen("pod"); len(got) > 0 {
		t.Errorf("a sandbox is no task, but has events %q", got)
	}
}

// A client's own process and root file system are run as they are.
func TestSandboxWithAProcess(t *testing.T) {
	n := newNode(t)
	dir := n.bundle("pod", n.spec("pod", "sh", "-c", "trap 'exit 3' TERM; sleep 1000 & wait"))
	s := n.start("pod", dir)
	_, err := s.sandbox.CreateSandbox(n.ctx(), &sandboxapi.CreateSandboxRequest{SandboxID: "pod", BundlePath: dir, Rootfs: n.rootfs()})
	n.must(err)
	started, err := s.sandbox.StartSandbox(n.ctx(), &sandboxapi.StartSandboxRequest{SandboxID: "pod"})
	n.must(err)
	wait.Until(n.t, "the trap", func() bool { // a first process gets only what it handles
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", started.Pid))
		_, after, _ := strings.Cut(string(text), "\nSigCgt:")
		var caught uint64
		fmt.Sscanf(after, "%x", &caught)
		return caught&(1<<(unix.SIGTERM-1)) != 0
	})
	n.must(unix.Kill(int(started.Pid), unix.SIGTERM))
	r, err := s.sandbox.WaitSandbox(n.ctx(), &sandboxapi.WaitSandboxRequest{SandboxID: "pod"})
	n.must(err)
	if r.ExitStatus != 3 {
		t.Errorf("status %d", r.ExitStatus)
	}
	_, err = s.sandbox.ShutdownSandbox(n.ctx(), &sandboxapi.ShutdownSandboxRequest{SandboxID: "pod"})
	n.must(err)
	s.gone()
}

// A sandbox that cannot be made leaves nothing, and its shim can be told to go.
func TestSandboxThatFails(t *testing.T) {
	n := newNode(t)
	dir := n.bundle("pod", n.spec("pod", "/none"))
	s := n.start("pod", dir)
	_, err := s.sandbox.CreateSandbox(n.ctx(), &sandboxapi.CreateSandboxRequest{SandboxID: "pod", BundlePath: dir, Rootfs: n.rootfs()})
	n.code("create", err, codes.Unknown, "/none")
	_, err = s.sandbox.CreateSandbox(n.ctx(), &sandboxapi.CreateSandboxRequest{SandboxID: "pod"})
	n.code("create without a bundle", err, codes.InvalidArgument)
	_, err = s.sandbox.SandboxStatus(n.ctx(), &sandboxapi.SandboxStatusRequest{SandboxID: "pod"})
	n.code("status", err, codes.NotFound)
	_, err = s.sandbox.ShutdownSandbox(n.ctx(), &sandboxapi.ShutdownSandboxRequest{SandboxID: "pod"})
	n.must(err)
	s.gone()
}

// After kill -9 of a pod's shim the one delete for the sandbox removes all of it.
func TestKilledShimOfASandbox(t *testing.T) {
	n := newNode(t)
	s, dir := n.sandbox("pod")
	started, err := s.sandbox.StartSandbox(n.ctx(), &sandboxapi.StartSandboxRequest{SandboxID: "pod"})
	n.must(err)
	spec := n.inPod("c", started.Pid, "sleep", "1000")
	spec.Linux.Namespaces = spec.Linux.Namespaces[:1] // so that the end of the pause process does not end it
	b := s.join("c", spec)
	n.must(b.create())
	n.must(b.begin(""))
	n.must(unix.Kill(s.pid, unix.SIGKILL))
	s.gone()
	pause := &box{shim: s, id: "pod", dir: dir, pid: started.Pid}
	if r := n.cleanUp(pause); r.Pid != started.Pid || r.ExitStatus != 137 {
		t.Errorf("answer %v", r)
	}
	n.dead(b)
	left, _ := filepath.Glob(filepath.Join(n.dir, "engine/*/*"))
	for _, path := range left {
		if filepath.Base(path) != harness.RootMark { // which stays with its directory
			t.Errorf("left: %q", path)
		}
	}
}
