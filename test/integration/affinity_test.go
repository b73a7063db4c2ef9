package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// cpus are the CPUs that this process may run on.
func cpus(t *testing.T, least int) []int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	var list []int
	for n := range 1024 {
		if set.IsSet(n) {
			list = append(list, n)
		}
	}
	if len(list) < least {
		harness.Skip(t, "needs %d CPUs", least)
	}
	return list
}

func execWithAffinity(t *testing.T, b *harness.Box, c *harness.Container, affinity *specs.CPUAffinity) []int {
	t.Helper()
	process := *c.Spec.Process
	process.Args = []string{"/inside", "look"}
	process.ExecCPUAffinity = affinity
	data, err := json.Marshal(process)
	if err != nil {
		t.Fatal(err)
	}
	file := b.WriteFile("process.json", string(data), 0o644)
	return harness.ParseView(t, c.Exec([]string{"--process", file}).OK(t).Stdout).CPUs
}

func TestExecCPUAffinity(t *testing.T) {
	list := cpus(t, 2)
	b := harness.New(t)
	c := b.Container("/inside", "hang")
	// It is not for the container's first process.
	c.Spec.Process.ExecCPUAffinity = &specs.CPUAffinity{Initial: fmt.Sprint(list[0]), Final: fmt.Sprint(list[0])}
	c.RunDetached()
	var first unix.CPUSet
	if err := unix.SchedGetaffinity(c.PID, &first); err != nil {
		t.Fatal(err)
	}
	if first.Count() != len(list) {
		t.Errorf("the first process runs on %d CPUs, want all %d", first.Count(), len(list))
	}
	for _, want := range list[:2] {
		if got := execWithAffinity(t, b, c, &specs.CPUAffinity{Final: fmt.Sprint(want)}); !slices.Equal(got, []int{want}) {
			t.Errorf("final %d: runs on %v", want, got)
		}
	}
	if got := execWithAffinity(t, b, c, &specs.CPUAffinity{Initial: fmt.Sprint(list[0]), Final: fmt.Sprintf("%d,%d", list[0], list[1])}); !slices.Equal(got, list[:2]) {
		t.Errorf("initial one, final two: runs on %v, want %v", got, list[:2])
	}
	// Without a final one the affinity is not touched once the process has moved.
	if got := execWithAffinity(t, b, c, &specs.CPUAffinity{Initial: fmt.Sprint(list[1])}); !slices.Equal(got, list[1:2]) && !slices.Equal(got, list) {
		t.Errorf("initial %d alone: runs on %v", list[1], got)
	}
	if got := execWithAffinity(t, b, c, nil); !slices.Equal(got, list) {
		t.Errorf("without affinity: runs on %v, want %v", got, list)
	}
	file := b.WriteFile("bad.json", `{"args":["/bin/true"],"cwd":"/","execCPUAffinity":{"initial":"1000"}}`, 0o644)
	c.Exec([]string{"--process", file}).FailsWith(t, 255, "execCPUAffinity/initial")
	c.Delete("--force")
}

// Without a final affinity the process keeps the initial one. (Where it moves into a cpuset of
// version 1, the kernel gives it all of that one's CPUs, so this container has no cgroup.)
func TestExecKeepsInitialAffinity(t *testing.T) {
	list := cpus(t, 2)
	b := harness.New(t)
	b.Globals = append(b.Globals, "--cgroup-manager", "disabled")
	c := b.Container("/inside", "hang")
	c.Spec.Linux.CgroupsPath, c.Spec.Linux.Resources = "", nil
	c.RunDetached()
	for _, initial := range list[:2] {
		if got := execWithAffinity(t, b, c, &specs.CPUAffinity{Initial: fmt.Sprint(initial)}); !slices.Equal(got, []int{initial}) {
			t.Errorf("initial %d alone: runs on %v", initial, got)
		}
	}
	c.Kill("KILL").WaitExit()
}

// A daemon that is pinned to some CPUs does not pin its containers, nor what is added to
// them; a box is for one command of its caller, and stays where that is.
func TestPinnedCaller(t *testing.T) {
	list := cpus(t, 2)
	b := harness.New(t)
	b.Wrap = []string{"taskset", "-c", fmt.Sprint(list[0])}
	c := b.Container("/inside", "hang").Create()
	var created unix.CPUSet
	if err := unix.SchedGetaffinity(c.PID, &created); err != nil {
		t.Fatal(err)
	}
	if created.Count() != len(list) {
		t.Errorf("the created process may run on %d CPUs, want all %d", created.Count(), len(list))
	}
	c.Start()
	if got := harness.ParseView(t, c.Exec(nil, "/inside", "look").OK(t).Stdout).CPUs; !slices.Equal(got, list) {
		t.Errorf("exec: runs on %v, want %v", got, list)
	}
	c.Delete("--force")
	if got := b.Container().Look().CPUs; !slices.Equal(got, list) {
		t.Errorf("run: runs on %v, want %v", got, list)
	}
	out := b.Berth("box", "--", "grep", "Cpus_allowed_list", "/proc/self/status").OK(t).Stdout
	if want := fmt.Sprintf("Cpus_allowed_list:\t%d\n", list[0]); out != want {
		t.Errorf("a box: %q, want %q", out, want)
	}
}

// Where the caller's CPUs and those of the cgroup have none in common, the cgroup's hold.
func TestPinnedCallerBesideACpuset(t *testing.T) {
	harness.Controller(t, "cpuset")
	list := cpus(t, 2)
	b := harness.New(t)
	b.Wrap = []string{"taskset", "-c", fmt.Sprint(list[0])}
	c := b.Container()
	c.Spec.Linux.Resources.CPU = &specs.LinuxCPU{Cpus: fmt.Sprint(list[1])}
	if got := c.Look().CPUs; !slices.Equal(got, list[1:2]) {
		t.Errorf("with cpuset %d: runs on %v", list[1], got)
	}
}
