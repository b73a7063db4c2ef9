package containerd2

import (
	"os"
	"strings"
	"syscall"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/berth-runtime/berth/internal/test/wait"
)

func TestPod(t *testing.T) {
	onNodes(t, func(t *testing.T, n *node) {
		p := n.runPod()
		a := p.run("trap 'exit 4' TERM; echo out; echo err >&2; while :; do sleep 0.05; done")
		b := p.run("exit 3")
		if got := b.ended(); got.ExitCode != 3 || got.Reason != "Error" || got.FinishedAt == 0 {
			t.Errorf("status %v", got)
		}
		if shims := n.Shims(); len(shims) != 1 {
			t.Errorf("%d shims for one pod", len(shims))
		}
		wait.Until(t, "the log", func() bool {
			log, _ := os.ReadFile(a.log)
			return strings.Contains(string(log), " stdout F out\n") && strings.Contains(string(log), " stderr F err\n")
		})

		r, err := n.ExecSync(n.ctx(), &cri.ExecSyncRequest{ContainerId: a.id, Cmd: []string{"sh", "-c", "echo o; echo e >&2; exit 9"}, Timeout: 60})
		if err != nil || r.ExitCode != 9 || string(r.Stdout) != "o\n" || string(r.Stderr) != "e\n" {
			t.Errorf("exec: %v, %v", r, err)
		}
		if _, err := n.ExecSync(n.ctx(), &cri.ExecSyncRequest{ContainerId: a.id, Cmd: []string{"sleep", "1000"}, Timeout: 1}); err == nil || !strings.Contains(err.Error(), "timeout") && !strings.Contains(err.Error(), "deadline exceeded") {
			t.Errorf("exec beyond its time: %v", err)
		}
		if got := a.exec("ps | grep -c '[s]leep 1000' || :"); got != "0\n" {
			t.Errorf("%s processes of an exec beyond its time are left", got)
		}

		if _, err := n.StopContainer(n.ctx(), &cri.StopContainerRequest{ContainerId: a.id, Timeout: 30}); err != nil {
			t.Error(err)
		}
		if got := a.ended(); got.ExitCode != 4 {
			t.Errorf("stopped: %v", got)
		}
		c := p.run("sleep 1000") // as an init it ignores SIGTERM
		if _, err := n.StopContainer(n.ctx(), &cri.StopContainerRequest{ContainerId: c.id, Timeout: 1}); err != nil {
			t.Error(err)
		}
		if got := c.ended(); got.ExitCode != 137 {
			t.Errorf("killed: %v", got)
		}
		for _, c := range []*container{a, b, c} {
			if _, err := n.RemoveContainer(n.ctx(), &cri.RemoveContainerRequest{ContainerId: c.id}); err != nil {
				t.Error(err)
			}
		}
		p.remove()
	})
}

func TestStatsAndUpdate(t *testing.T) {
	onNodes(t, func(t *testing.T, n *node) {
		p := n.runPod()
		c := p.run("sleep 1000", func(c *cri.ContainerConfig) {
			c.Linux.Resources = &cri.LinuxContainerResources{MemoryLimitInBytes: 64 << 20, CpuShares: 512, CpuPeriod: 100000, CpuQuota: 50000}
		})
		r, err := n.ContainerStats(n.ctx(), &cri.ContainerStatsRequest{ContainerId: c.id})
		if err != nil {
			t.Fatal(err)
		}
		if s := r.Stats; s.Cpu.GetUsageCoreNanoSeconds().GetValue() == 0 || s.Memory.GetWorkingSetBytes().GetValue() == 0 {
			t.Errorf("stats: %v", s)
		}
		pods, err := n.PodSandboxStats(n.ctx(), &cri.PodSandboxStatsRequest{PodSandboxId: p.id})
		if err != nil || len(pods.Stats.GetLinux().GetContainers()) != 1 || pods.Stats.GetLinux().GetProcess().GetProcessCount().GetValue() == 0 && n.Release.Modern {
			t.Errorf("stats of the pod: %v, %v", pods, err)
		}
		if _, err := n.UpdateContainerResources(n.ctx(), &cri.UpdateContainerResourcesRequest{
			ContainerId: c.id, Linux: &cri.LinuxContainerResources{MemoryLimitInBytes: 96 << 20},
		}); err != nil {
			t.Fatal(err)
		}
		limit := ""
		for _, group := range n.Cgroups() {
			for _, name := range []string{"/memory.limit_in_bytes", "/memory.max"} {
				if text, err := os.ReadFile(group + name); err == nil && strings.HasSuffix(group, "/"+c.id) {
					limit = string(text)
				}
			}
		}
		if limit != "100663296\n" {
			t.Errorf("limit of memory after the update: %q", limit)
		}
		p.remove()
	})
}

func TestOOMKilled(t *testing.T) {
	onNodes(t, func(t *testing.T, n *node) {
		p := n.runPod()
		c := p.run("sleep 0.2; tail /dev/zero", func(c *cri.ContainerConfig) {
			c.Linux.Resources = &cri.LinuxContainerResources{MemoryLimitInBytes: 16 << 20}
		})
		if got := c.ended(); got.Reason != "OOMKilled" || got.ExitCode != 137 {
			t.Errorf("status %v", got)
		}
		p.remove()
	})
}

func TestContainerdRestartsWithPods(t *testing.T) {
	onNodes(t, func(t *testing.T, n *node) {
		p := n.runPod()
		stays := p.run("sleep 1000")
		goes := p.run("while [ ! -e /go ]; do sleep 0.05; done; exit 5")
		pid := n.pidOf(goes)
		goes.exec(": > /going")
		n.Stop()
		if err := os.WriteFile(procRoot(pid)+"/go", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "the container has ended", func() bool { return syscall.Kill(pid, 0) != nil })
		n.Start()
		n.connect()
		if got := goes.ended(); got.ExitCode != 5 {
			t.Errorf("ended while containerd was away: %v", got)
		}
		if got := stays.exec("echo here"); got != "here\n" {
			t.Errorf("exec after the restart: %q", got)
		}
		if shims := n.Shims(); len(shims) != 1 {
			t.Errorf("%d shims", len(shims))
		}
		p.remove()
	})
}

// After kill -9 of a pod's shim and removal of the pod nothing is left of it.
// What containerd is asked for is what the kubelet asks for then.
func TestShimOfAPodIsKilled(t *testing.T) { onNodes(t, shimOfAPodIsKilled) }

func shimOfAPodIsKilled(t *testing.T, n *node) {
	p := n.runPod()
	var pids []int
	for range 3 {
		pids = append(pids, n.pidOf(p.run("sleep 1000")))
	}
	for _, shim := range n.Shims() {
		syscall.Kill(shim, syscall.SIGKILL)
	}
	wait.Until(t, "containerd has seen it", func() bool {
		r, err := n.PodSandboxStatus(n.ctx(), &cri.PodSandboxStatusRequest{PodSandboxId: p.id})
		return err == nil && r.Status.State == cri.PodSandboxState_SANDBOX_NOTREADY
	})
	// containerd takes a while to note the ends of all, and refuses until then. The
	// kubelet tries again, too.
	wait.Until(t, "the pod is removed", func() bool {
		_, err := n.StopPodSandbox(n.ctx(), &cri.StopPodSandboxRequest{PodSandboxId: p.id})
		if err == nil {
			_, err = n.RemovePodSandbox(n.ctx(), &cri.RemovePodSandboxRequest{PodSandboxId: p.id})
		}
		return err == nil
	})
	for _, pid := range pids {
		wait.Until(t, "its containers are gone", func() bool { return syscall.Kill(pid, 0) != nil })
	}
	r, err := n.ListContainers(n.ctx(), &cri.ListContainersRequest{})
	if err != nil || len(r.Containers) != 0 {
		t.Errorf("containers: %v, %v", r, err)
	}
	// Cgroups, mounts and state are looked for at the end of the test.
}
