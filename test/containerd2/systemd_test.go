package containerd2

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/containerd"
)

// With SystemdCgroup, as docs/kubernetes.md has it, the containers of a pod are
// units in the slice that the kubelet has made for the pod: with their limits,
// which CRI changes, and gone with the pod.
func TestPodOfKubeletsSlices(t *testing.T) {
	if os.Getenv("BERTH_GUEST") == "" {
		t.Skip("the slices have the names of kubelet's own, so they are made only in a guest (test/guests/test trixie-v2 -- ./test/containerd2)")
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		t.Skip("systemd does not run here")
	}
	r := containerd.Modern(t)
	docs := readPage(t, "kubernetes.md")
	n := newNode(t, r, documentedHandler(t, docs), func(d *containerd.Daemon) string {
		return substitute(t, documented(d, docs), "SystemdCgroup = false", "SystemdCgroup = true")
	})
	const slice = "kubepods-burstable-pod4e3f2a10_9d55_4c0c_8b7e_0123456789ab.slice"
	const inside = "/kubepods.slice/kubepods-burstable.slice/" + slice
	makeSlice(t, slice)

	p := n.runPod(func(c *cri.PodSandboxConfig) { c.Linux.CgroupParent = inside })
	c := p.run("sleep 1000", func(c *cri.ContainerConfig) {
		c.Linux.Resources = &cri.LinuxContainerResources{MemoryLimitInBytes: 64 << 20, CpuShares: 512, CpuPeriod: 100000, CpuQuota: 50000}
	})
	for _, id := range []string{p.id, c.id} {
		unit := "cri-containerd-" + id + ".scope"
		wantProperties(t, unit, map[string]string{"ActiveState": "active", "Slice": slice, "ControlGroup": inside + "/" + unit})
	}
	unit := "cri-containerd-" + c.id + ".scope"
	memory, weight := "MemoryMax", "CPUWeight"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil { // where the controllers are on v1
		memory, weight = "MemoryLimit", "CPUShares"
	}
	wantProperties(t, unit, map[string]string{memory: "67108864", "CPUQuotaPerSecUSec": "500ms"})
	if got := property(t, unit, weight); got == "[not set]" || got == "100" || weight == "CPUShares" && got != "512" {
		t.Errorf("%s is %s: the shares are not in it", weight, got)
	}
	if _, err := n.UpdateContainerResources(n.ctx(), &cri.UpdateContainerResourcesRequest{
		ContainerId: c.id, Linux: &cri.LinuxContainerResources{MemoryLimitInBytes: 96 << 20, CpuPeriod: 100000, CpuQuota: 25000},
	}); err != nil {
		t.Fatal(err)
	}
	wantProperties(t, unit, map[string]string{memory: "100663296", "CPUQuotaPerSecUSec": "250ms"})
	if got := c.exec("cat /sys/fs/cgroup/memory.max || cat /sys/fs/cgroup/memory/memory.limit_in_bytes"); got != "100663296\n" {
		t.Errorf("the container sees a limit of memory of %q", got)
	}

	p.remove()
	wait.Until(t, "systemd has forgotten the units", func() bool {
		return systemctl(t, "list-units", "--all", "--no-legend", "--plain", "cri-containerd-*") == ""
	})
	for _, hierarchy := range []string{"", "/systemd", "/unified", "/memory", "/cpu"} {
		if left, _ := filepath.Glob("/sys/fs/cgroup" + hierarchy + inside + "/*.scope"); len(left) != 0 {
			t.Errorf("left: %q", left)
		}
	}
}

// makeSlice makes a slice of a pod, as the kubelet does before it asks for the
// pod, and stops it at the end of the test.
func makeSlice(t *testing.T, name string) {
	t.Helper()
	const manager = "org.freedesktop.systemd1"
	cmd := exec.Command("busctl", "call", manager, "/org/freedesktop/systemd1", manager+".Manager", "StartTransientUnit",
		"ssa(sv)a(sa(sv))", name, "replace", "1", "MemoryMax", "t", "268435456", "0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make %s: %v\n%s", name, err, out)
	}
	systemctl(t, "start", name) // which waits for the job
	t.Cleanup(func() { systemctl(t, "stop", name) })
}

func systemctl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("systemctl", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("systemctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// property is one of a unit, as systemctl shows it.
func property(t *testing.T, unit, name string) string {
	t.Helper()
	return systemctl(t, "show", "--property="+name, "--value", unit)
}

func wantProperties(t *testing.T, unit string, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := property(t, unit, name); got != value {
			t.Errorf("%s of %s is %q, want %q", name, unit, got, value)
		}
	}
}
