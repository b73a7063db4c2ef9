package containerd2

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/containerd"
)

const (
	image      = "localhost/berth/box:1"
	pauseImage = "localhost/berth/pause:1"
	// criNamespace is the one of containerd's that CRI is in.
	criNamespace = "k8s.io"
)

func TestMain(m *testing.M) { containerd.Main(m) }

// node is a daemon with CRI, as a kubelet finds it.
type node struct {
	*containerd.Daemon
	t testing.TB
	cri.RuntimeServiceClient
	handler string
}

// onNodes runs a test on a node of each release.
func onNodes(t *testing.T, test func(*testing.T, *node)) {
	containerd.Each(t, func(t *testing.T, r containerd.Release) { test(t, recommendedNode(t, r)) })
}

// recommendedNode is a node with the configuration that docs/kubernetes.md has
// for a release, and the handler of its RuntimeClass.
func recommendedNode(t testing.TB, r containerd.Release) *node {
	t.Helper()
	docs := readPage(t, "kubernetes.md")
	return newNode(t, r, documentedHandler(t, docs), func(d *containerd.Daemon) string { return documented(d, docs) })
}

// documentedHandler is that of a page's RuntimeClass.
func documentedHandler(t testing.TB, docs page) string {
	t.Helper()
	var class struct{ Handler string }
	if err := yaml.Unmarshal([]byte(docs.block(t, "yaml", "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\n")), &class); err != nil {
		t.Fatal(err)
	}
	return class.Handler
}

// newNode starts a daemon with a configuration, whose pods are of one handler.
func newNode(t testing.TB, r containerd.Release, handler string, config func(*containerd.Daemon) string) *node {
	t.Helper()
	n := &node{t: t, handler: handler}
	path := filepath.Dir(containerd.BuildShim(t)) + ":" + os.Getenv("PATH")
	n.Daemon = containerd.New(t, r, containerd.Config{
		Env: []string{"PATH=" + path},
		CRI: func(d *containerd.Daemon) string { return config(d) + testTables(d) },
	})
	n.connect()
	n.Image(criNamespace, image, "sleep", "1000")
	n.Image(criNamespace, pauseImage, "sleep", "100000")
	for _, name := range []string{image, pauseImage} {
		wait.Until(t, "CRI knows image "+name, func() bool {
			r, err := cri.NewImageServiceClient(n.Conn).ImageStatus(t.Context(), &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: name}})
			return err == nil && r.Image != nil
		})
	}
	t.Cleanup(n.removeAll)
	return n
}

// connect makes the client anew; a daemon that has been started again needs it.
// CRI finds out what there is after the daemon answers, and refuses all until then.
func (n *node) connect() {
	n.t.Helper()
	n.RuntimeServiceClient = cri.NewRuntimeServiceClient(n.Conn)
	wait.Until(n.t, "CRI answers", func() bool {
		_, err := n.ListPodSandbox(n.ctx(), &cri.ListPodSandboxRequest{})
		return err == nil
	})
}

// documented is a configuration of docs/kubernetes.md, with what differs on this
// machine: the paths, and systemd, which only a guest has.
func documented(d *containerd.Daemon, docs page) string {
	version := "version = 2\n"
	if d.Release.Modern {
		version = "version = 3\n"
	}
	config := strings.TrimPrefix(docs.block(d.T, "toml", version), version) // the tests have theirs
	if d.Release.Modern {
		config = substitute(d.T, config, "/usr/local/bin/containerd-shim-berth-v2", d.Shim)
		return substitute(d.T, config, "SystemdCgroup = true", options(d))
	}
	const path = "/etc/containerd/berth-shim.toml"
	own := filepath.Join(d.Dir, "berth-shim.toml")
	table := docs.block(d.T, "toml", "SystemdCgroup")
	if err := os.WriteFile(own, []byte(substitute(d.T, table, "SystemdCgroup = true", options(d))), 0o644); err != nil {
		d.T.Fatal(err)
	}
	return substitute(d.T, config, path, own)
}

// options have the engine's state where it is looked through for leaks.
func options(d *containerd.Daemon) string {
	return fmt.Sprintf("SystemdCgroup = false\nRoot = %q", d.Dir+"/engine")
}

// testTables is what a test's daemon needs besides: to do without a registry, to
// keep to its directory, and to run where its privileges are limited.
func testTables(d *containerd.Daemon) string {
	conf := filepath.Join(d.Dir, "cni")
	if err := os.MkdirAll(conf, 0o755); err != nil {
		d.T.Fatal(err)
	}
	network := fmt.Sprintf(`{"cniVersion": "0.4.0", "name": "berth-test", "plugins": [
		{"type": "ptp", "ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": "198.18.77.0/24"}]]}}]}`, d.Dir+"/ipam")
	if err := os.WriteFile(filepath.Join(conf, "net.conflist"), []byte(network), 0o644); err != nil {
		d.T.Fatal(err)
	}
	common := `
  disable_apparmor = true
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  netns_mounts_under_state_dir = true
  drain_exec_sync_io_timeout = "10s"
`
	if d.Release.Modern {
		programs := `bin_dirs = ["/usr/lib/cni"]`
		if strings.HasPrefix(d.Release.Name, "v2.0.") { // before there could be many
			programs = `bin_dir = "/usr/lib/cni"`
		}
		return fmt.Sprintf(`
[plugins."io.containerd.cri.v1.runtime"]
%[1]s
[plugins."io.containerd.cri.v1.runtime".cni]
  %[4]s
  conf_dir = "%[2]s"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "%[3]s"
[plugins."io.containerd.grpc.v1.cri"]
  disable_tcp_service = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
`, common, conf, pauseImage, programs)
	}
	return fmt.Sprintf(`
[plugins."io.containerd.grpc.v1.cri"]
%[1]s
  sandbox_image = "%[3]s"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "%[2]s"
`, common, conf, pauseImage)
}

// removeAll removes the pods that a failed test has left.
func (n *node) removeAll() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pods, err := n.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		n.t.Errorf("list the pods: %v", err)
		return
	}
	for _, p := range pods.Items {
		n.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: p.Id})
		if _, err := n.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: p.Id}); err != nil {
			n.t.Errorf("remove pod %s: %v", p.Id, err)
		}
	}
}

var sequence atomic.Int32

// pod is a pod that runs.
type pod struct {
	*node
	id     string
	config *cri.PodSandboxConfig
}

// runPod runs a pod in the host's network, unless it is changed to another.
func (n *node) runPod(changes ...func(*cri.PodSandboxConfig)) *pod {
	n.t.Helper()
	name := fmt.Sprintf("pod%d", sequence.Add(1))
	logs := filepath.Join(n.Dir, "logs", name)
	if err := os.MkdirAll(logs, 0o755); err != nil {
		n.t.Fatal(err)
	}
	config := &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: name, Uid: name, Namespace: "default"},
		LogDirectory: logs,
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent: n.Cgroup,
			SecurityContext: &cri.LinuxSandboxSecurityContext{
				NamespaceOptions: &cri.NamespaceOption{Network: cri.NamespaceMode_NODE, Pid: cri.NamespaceMode_CONTAINER},
			},
		},
	}
	for _, c := range changes {
		c(config)
	}
	r, err := n.RunPodSandbox(n.ctx(), &cri.RunPodSandboxRequest{Config: config, RuntimeHandler: n.handler})
	if err != nil {
		n.t.Fatalf("run a pod: %v", err)
	}
	return &pod{node: n, id: r.PodSandboxId, config: config}
}

func (n *node) ctx() context.Context { return n.t.Context() }

// container is a container of a pod.
type container struct {
	*pod
	id  string
	log string
}

// run creates and starts a container that runs a script.
func (p *pod) run(script string, changes ...func(*cri.ContainerConfig)) *container {
	p.t.Helper()
	c := p.create(script, changes...)
	if _, err := p.StartContainer(p.ctx(), &cri.StartContainerRequest{ContainerId: c.id}); err != nil {
		p.t.Fatalf("start a container: %v", err)
	}
	return c
}

func (p *pod) create(script string, changes ...func(*cri.ContainerConfig)) *container {
	p.t.Helper()
	name := fmt.Sprintf("c%d", sequence.Add(1))
	config := &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: name},
		Image:    &cri.ImageSpec{Image: image},
		Command:  []string{"sh", "-c", script},
		LogPath:  name + ".log",
		Linux: &cri.LinuxContainerConfig{
			Resources: &cri.LinuxContainerResources{},
			SecurityContext: &cri.LinuxContainerSecurityContext{
				NamespaceOptions: p.config.Linux.SecurityContext.NamespaceOptions,
				Seccomp:          &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Unconfined},
			},
		},
	}
	for _, c := range changes {
		c(config)
	}
	r, err := p.CreateContainer(p.ctx(), &cri.CreateContainerRequest{PodSandboxId: p.id, Config: config, SandboxConfig: p.config})
	if err != nil {
		p.t.Fatalf("create a container: %v", err)
	}
	return &container{pod: p, id: r.ContainerId, log: filepath.Join(p.config.LogDirectory, config.LogPath)}
}

func (p *pod) remove() {
	p.t.Helper()
	if _, err := p.StopPodSandbox(p.ctx(), &cri.StopPodSandboxRequest{PodSandboxId: p.id}); err != nil {
		p.t.Errorf("stop the pod: %v", err)
	}
	if _, err := p.RemovePodSandbox(p.ctx(), &cri.RemovePodSandboxRequest{PodSandboxId: p.id}); err != nil {
		p.t.Errorf("remove the pod: %v", err)
	}
}

func (c *container) status() *cri.ContainerStatus {
	c.t.Helper()
	r, err := c.ContainerStatus(c.ctx(), &cri.ContainerStatusRequest{ContainerId: c.id})
	if err != nil {
		c.t.Fatalf("status of a container: %v", err)
	}
	return r.Status
}

// ended waits for the end of a container.
func (c *container) ended() *cri.ContainerStatus {
	c.t.Helper()
	wait.Until(c.t, "the container has ended", func() bool { return c.status().State == cri.ContainerState_CONTAINER_EXITED })
	return c.status()
}

// exec runs a script in the container, and gives what it printed.
func (c *container) exec(script string) string {
	c.t.Helper()
	r, err := c.ExecSync(c.ctx(), &cri.ExecSyncRequest{ContainerId: c.id, Cmd: []string{"sh", "-c", script}, Timeout: 60})
	if err != nil {
		c.t.Fatalf("exec: %v", err)
	}
	if r.ExitCode != 0 {
		c.t.Errorf("%s: exit code %d: %s", script, r.ExitCode, r.Stderr)
	}
	return string(r.Stdout)
}
