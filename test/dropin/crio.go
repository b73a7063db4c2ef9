package dropin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// CRIO is a CRI-O of a test, with a client as a kubelet has one.
type CRIO struct {
	*Machine
	*daemon
	folder  string // of the programs
	storage []string
	cri.RuntimeServiceClient
	started int // containers
}

const crioSocket = "/run/crio/crio.sock"

// NewCRIO finds what test/crio/build has built. It is started by Configure, or by what pages call
// for that.
func NewCRIO(b *harness.Box) *CRIO {
	b.T.Helper()
	out, err := exec.Command("../crio/build", "--cached").Output()
	if err != nil {
		harness.Skip(b.T, "CRI-O has not been built (test/crio/build does)")
	}
	for _, tool := range []string{"conmon", "crun", "podman"} {
		harness.NeedTool(b.T, tool, tool)
	}
	c := &CRIO{folder: strings.TrimSpace(string(out)), storage: []string{"--root", "/var/lib/containers/storage", "--runroot", "/run/containers/storage", "--storage-driver", "vfs"}}
	c.Machine = NewMachine(b)
	c.leaveOrphans()
	c.daemon = newDaemon(b, "crio")
	conn, err := grpc.NewClient("unix://"+crioSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	c.must(err)
	b.T.Cleanup(func() { conn.Close() })
	c.RuntimeServiceClient = cri.NewRuntimeServiceClient(conn)
	c.serveSystemctl("crio", c.restart)
	return c
}

// Image brings an image into CRI-O's storage, which is that of podman too: without a registry there
// is nothing to pull it from.
func (c *CRIO) Image() {
	c.Machine.b.T.Helper()
	podman := harness.NeedTool(c.Machine.b.T, "podman", "podman")
	c.call(podman, append(c.storage, "import", "--quiet", c.Machine.Image(), image)...).OK(c.Machine.b.T)
}

// restart starts CRI-O, with the driver that it has by default where systemd runs, and comes back
// when it takes calls.
func (c *CRIO) restart() error {
	driver, conmon := "cgroupfs", "pod"
	if c.systemd {
		driver, conmon = "systemd", "system.slice"
	}
	cmd := exec.Command(filepath.Join(c.folder, "crio"), append(c.storage,
		"--cgroup-manager", driver, "--conmon-cgroup", conmon, "--pinns-path", filepath.Join(c.folder, "pinns"),
		"--pause-image", image, "--cni-plugin-dir", "/usr/lib/cni", "--disable-hostport-mapping", "--stream-port", "0", "--listen", crioSocket)...)
	cmd.Env = append(append(os.Environ(), c.Env()...), c.Machine.b.Mark())
	if err := c.start(cmd); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), harness.Deadline)
	defer cancel()
	if _, err := c.Version(ctx, &cri.VersionRequest{}, grpc.WaitForReady(true)); err != nil {
		return fmt.Errorf("CRI-O does not answer: %w", err)
	}
	return nil
}

// Env is the environment of its users, who have its program.
func (c *CRIO) Env() []string {
	env := c.Machine.Env()
	env[0] += ":" + c.folder
	return env
}

// Configure writes a file of configuration and starts CRI-O with it.
func (c *CRIO) Configure(config string) {
	c.Machine.b.T.Helper()
	c.must(os.MkdirAll("/etc/crio/crio.conf.d", 0o755))
	c.must(os.WriteFile("/etc/crio/crio.conf.d/20-berth.conf", []byte(config), 0o644))
	c.must(c.restart())
}

// Pod is a pod that runs.
type Pod struct {
	*CRIO
	t      testing.TB
	id     string
	config *cri.PodSandboxConfig
}

// Pod runs a pod in the host's network. CRI-O has its namespaces kept by a file each, and no
// container for it.
func (c *CRIO) Pod(name, handler string) *Pod {
	p := &Pod{CRIO: c, t: c.Machine.b.T}
	p.t.Helper()
	parent := "/" + c.Machine.b.Tag
	if c.systemd {
		parent = c.slice()
	}
	p.config = &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: name, Uid: name, Namespace: "default"},
		LogDirectory: c.Machine.b.Path("logs-" + name),
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent: parent,
			SecurityContext: &cri.LinuxSandboxSecurityContext{
				NamespaceOptions: &cri.NamespaceOption{Network: cri.NamespaceMode_NODE, Pid: cri.NamespaceMode_CONTAINER},
			},
		},
	}
	r, err := c.RunPodSandbox(context.Background(), &cri.RunPodSandboxRequest{Config: p.config, RuntimeHandler: handler})
	if err != nil {
		p.t.Fatalf("run a pod: %v", err)
	}
	p.id = r.PodSandboxId
	return p
}

// Remove stops the pod and removes it, with its containers.
func (p *Pod) Remove() {
	p.t.Helper()
	if _, err := p.StopPodSandbox(context.Background(), &cri.StopPodSandboxRequest{PodSandboxId: p.id}); err != nil {
		p.t.Errorf("stop the pod: %v", err)
	}
	if _, err := p.RemovePodSandbox(context.Background(), &cri.RemovePodSandboxRequest{PodSandboxId: p.id}); err != nil {
		p.t.Errorf("remove the pod: %v", err)
	}
}

// PodContainer is a container of a pod.
type PodContainer struct {
	*Pod
	ID, Log string
}

// Run has the pod run a script in a container.
func (p *Pod) Run(script string, resources *cri.LinuxContainerResources) *PodContainer {
	p.t.Helper()
	p.started++
	name := fmt.Sprintf("c%d", p.started)
	created, err := p.CreateContainer(context.Background(), &cri.CreateContainerRequest{PodSandboxId: p.id, SandboxConfig: p.config, Config: &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: name},
		Image:    &cri.ImageSpec{Image: image},
		Command:  []string{"sh", "-c", script},
		LogPath:  name + ".log",
		Linux: &cri.LinuxContainerConfig{
			Resources:       resources,
			SecurityContext: &cri.LinuxContainerSecurityContext{NamespaceOptions: p.config.Linux.SecurityContext.NamespaceOptions},
		},
	}})
	if err != nil {
		p.t.Fatalf("create a container: %v", err)
	}
	if _, err := p.StartContainer(context.Background(), &cri.StartContainerRequest{ContainerId: created.ContainerId}); err != nil {
		p.t.Fatalf("start a container: %v", err)
	}
	return &PodContainer{Pod: p, ID: created.ContainerId, Log: filepath.Join(p.config.LogDirectory, name+".log")}
}

// Ended waits for the container's end.
func (c *PodContainer) Ended() (status *cri.ContainerStatus) {
	c.t.Helper()
	wait.Until(c.t, "the container has ended", func() bool {
		r, err := c.ContainerStatus(context.Background(), &cri.ContainerStatusRequest{ContainerId: c.ID})
		if err != nil {
			c.t.Fatalf("status of a container: %v", err)
		}
		status = r.Status
		return status.State == cri.ContainerState_CONTAINER_EXITED
	})
	return status
}
