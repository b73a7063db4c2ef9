package containerd2

import (
	"os"
	"strings"
	"syscall"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/containerd"
)

// sandboxerNode is a node whose pods are sandboxes of the shim's own sandbox
// service, by the configuration of docs/shim.md with some changes.
func sandboxerNode(t *testing.T, changes ...func(d *containerd.Daemon, config string) string) *node {
	t.Helper()
	r := containerd.Modern(t)
	for _, series := range []string{"v2.0.", "v2.1.", "v2.2."} {
		if strings.HasPrefix(r.Name, series) {
			t.Skip("containerd before 2.3 crashes at a sandbox without a config.json (core/runtime/v2.NewBundle reads the spec that is not there)")
		}
	}
	docs := readPage(t, "shim.md")
	return newNode(t, r, "berth-sandbox", func(d *containerd.Daemon) string {
		const version = "version = 3\n" // of which the tests' daemons have theirs
		config := strings.TrimPrefix(docs.block(t, "toml", version), version)
		for _, change := range changes {
			config = change(d, config)
		}
		return config
	})
}

// ownOptions are those of a test's daemon in place of the documented ones.
func ownOptions(d *containerd.Daemon, config string) string {
	return substitute(d.T, config, "SystemdCgroup = true", options(d))
}

// noOptions leaves the table of options out.
func noOptions(d *containerd.Daemon, config string) string {
	config, _, _ = strings.Cut(config, "\n  [plugins.")
	return config
}

func streams(d *containerd.Daemon, config string) string {
	const sandboxer = `sandboxer = "shim"`
	return substitute(d.T, config, sandboxer, sandboxer+"\n  io_type = \"streaming\"")
}

func TestPodOfTheShimsSandboxService(t *testing.T) {
	n := sandboxerNode(t, ownOptions)
	p := n.runPod(func(c *cri.PodSandboxConfig) {
		c.Linux.SecurityContext.NamespaceOptions.Pid = cri.NamespaceMode_POD
		c.Linux.Sysctls = map[string]string{"kernel.shm_rmid_forced": "1"}
		c.Annotations = map[string]string{"team": "blue"}
	})
	a := p.run("trap 'exit 4' TERM; echo out; while :; do sleep 0.05; done")
	b := p.run("exit 3")
	if got := b.ended(); got.ExitCode != 3 {
		t.Errorf("status %v", got)
	}
	if shims := n.Shims(); len(shims) != 1 {
		t.Errorf("%d shims for one pod", len(shims))
	}
	wait.Until(t, "the log", func() bool {
		log, _ := os.ReadFile(a.log)
		return strings.Contains(string(log), " stdout F out\n")
	})
	if got := a.exec("cat /proc/sys/kernel/shm_rmid_forced; cat /proc/1/comm"); got != "1\npause\n" {
		t.Errorf("inside the pod: %q", got)
	}
	status, err := n.PodSandboxStatus(n.ctx(), &cri.PodSandboxStatusRequest{PodSandboxId: p.id, Verbose: true})
	if err != nil || status.Status.State != cri.PodSandboxState_SANDBOX_READY || status.Status.Annotations["team"] != "blue" {
		t.Errorf("status of the pod: %v, %v", status, err)
	}
	if stats, err := n.PodSandboxStats(n.ctx(), &cri.PodSandboxStatsRequest{PodSandboxId: p.id}); err != nil || len(stats.Stats.GetLinux().GetContainers()) == 0 || stats.Stats.GetLinux().GetMemory().GetUsageBytes().GetValue() == 0 {
		t.Errorf("stats of the pod: %v, %v", stats, err)
	}
	// Asked once more by another daemon, which has found the sandbox's shim.
	n.Stop()
	n.Start()
	n.connect()
	if got := a.exec("echo here"); got != "here\n" {
		t.Errorf("exec after a restart: %q", got)
	}
	if _, err := n.StopContainer(n.ctx(), &cri.StopContainerRequest{ContainerId: a.id, Timeout: 30}); err != nil {
		t.Error(err)
	}
	if got := a.ended(); got.ExitCode != 4 {
		t.Errorf("stopped: %v", got)
	}
	stays := p.run("sleep 1000")
	pid := n.pidOf(stays)
	p.remove()
	if syscall.Kill(pid, 0) == nil {
		t.Error("a container is left of a pod that has been removed")
	}
}

// What pods do otherwise they do as sandboxes, too. With a user namespace they
// must do without options: containerd takes them for runc's, and fails.
func TestFeaturesOfTheShimsSandboxService(t *testing.T) {
	t.Run("exec and attach", func(t *testing.T) { execAndAttach(t, sandboxerNode(t, ownOptions)) })
	t.Run("exec and attach by streams", func(t *testing.T) { execAndAttach(t, sandboxerNode(t, ownOptions, streams)) })
	t.Run("port forward", func(t *testing.T) { portForward(t, sandboxerNode(t, ownOptions)) })
	t.Run("user namespaces", func(t *testing.T) { userNamespaces(t, sandboxerNode(t, noOptions)) })
	t.Run("killed shim", func(t *testing.T) { shimOfAPodIsKilled(t, sandboxerNode(t, ownOptions)) })
}
