package dropin

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// crioConfig is that of docs/cri-o.md, in short.
const crioConfig = `[crio.runtime.runtimes.berth]
runtime_path = "/usr/local/bin/berth"
runtime_type = "oci"
runtime_root = "/run/berth"
monitor_path = "/usr/bin/conmon"
`

// A pod of CRI-O's with containers, as a kubelet has them made, used and ended.
func TestCRIO(t *testing.T) {
	NeedTime(t)
	b := harness.New(t)
	c := NewCRIO(b)
	c.Install()
	c.Image()
	c.Configure(crioConfig)
	ctx, cancel := context.WithTimeout(context.Background(), 2*harness.Deadline)
	defer cancel()

	pod := c.Pod("pod", "berth")
	one := pod.Run(`trap "exit 4" TERM; echo out; echo err >&2; while :; do sleep 0.1; done`, &cri.LinuxContainerResources{MemoryLimitInBytes: 64 << 20, CpuPeriod: 100000, CpuQuota: 50000})
	two := pod.Run("exit 3", nil)
	if got := two.Ended(); got.ExitCode != 3 {
		t.Errorf("a container that exits with 3: %v", got)
	}
	wait.Until(t, "what it prints in the log", func() bool {
		text, _ := os.ReadFile(one.Log)
		return strings.Contains(string(text), " stdout F out\n") && strings.Contains(string(text), " stderr F err\n")
	})
	if out := b.Berth("--root", "/run/berth", "list", "-q").OK(t).Stdout; !strings.Contains(out, one.ID) {
		t.Errorf("berth list shows %q, not %s", out, one.ID)
	}
	r, err := c.ExecSync(ctx, &cri.ExecSyncRequest{ContainerId: one.ID, Cmd: []string{"sh", "-c", "echo o; echo e >&2; exit 9"}, Timeout: 60})
	if err != nil || r.ExitCode != 9 || string(r.Stdout) != "o\n" || string(r.Stderr) != "e\n" {
		t.Errorf("exec: %v, %v", r, err)
	}
	r, err = c.ExecSync(ctx, &cri.ExecSyncRequest{ContainerId: one.ID, Cmd: []string{"sleep", "1000"}, Timeout: 1})
	if err == nil && (r.ExitCode != -1 || !strings.Contains(string(r.Stderr), "timed out")) {
		t.Errorf("an exec beyond its time: %v", r)
	}
	if got := limitOf(t, pidOf(t, b, one.ID), "memory", "memory.limit_in_bytes", "memory.max"); got != "67108864" {
		t.Errorf("limit of memory: %s", got)
	}
	if _, err := c.UpdateContainerResources(ctx, &cri.UpdateContainerResourcesRequest{ContainerId: one.ID, Linux: &cri.LinuxContainerResources{MemoryLimitInBytes: 96 << 20}}); err != nil {
		t.Error(err)
	}
	if got := limitOf(t, pidOf(t, b, one.ID), "memory", "memory.limit_in_bytes", "memory.max"); got != "100663296" {
		t.Errorf("limit of memory after the update: %s", got)
	}
	if c.systemd {
		isUnit(t, pidOf(t, b, one.ID), c.slice()+"/crio-"+one.ID+".scope", "100663296")
	}
	stats, err := c.ContainerStats(ctx, &cri.ContainerStatsRequest{ContainerId: one.ID})
	if err != nil || stats.Stats.GetMemory().GetWorkingSetBytes().GetValue() == 0 {
		t.Errorf("stats: %v, %v", stats, err)
	}
	if _, err := c.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: one.ID, Timeout: 30}); err != nil {
		t.Error(err)
	}
	if got := one.Ended(); got.ExitCode != 4 {
		t.Errorf("a container that is stopped: %v", got)
	}
	pod.Remove()
}

// pidOf is the container's first process, as the engine has it.
func pidOf(t *testing.T, b *harness.Box, id string) string {
	t.Helper()
	var state struct{ PID int }
	if err := json.Unmarshal([]byte(b.Berth("--root", "/run/berth", "state", id).OK(t).Stdout), &state); err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(state.PID)
}

// isUnit says whether a process is in the cgroup of a unit, which has its limit of memory.
func isUnit(t *testing.T, pid, unit, memory string) {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil || !strings.Contains(string(text), "/"+unit+"\n") {
		t.Errorf("process %s is not in %s: %s, %v", pid, unit, text, err)
	}
	out, err := exec.Command("systemctl", "show", "--property", "MemoryMax", path.Base(unit)).CombinedOutput()
	if err != nil || string(out) != "MemoryMax="+memory+"\n" {
		t.Errorf("%s: %s, %v", unit, out, err)
	}
}
