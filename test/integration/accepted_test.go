package integration

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// Configs that the specification or the other runtimes allow, by what comes of them.

// The idle class has no levels.
func TestIOPriorityIdleWithoutALevel(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "look")
	c.Spec.Process.IOPriority = &specs.LinuxIOPriority{Class: specs.IOPRIO_CLASS_IDLE, Priority: 5}
	data, err := json.Marshal(c.Spec)
	if err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(string(data), `,"priority":5}`, `}`, 1)
	if config == string(data) {
		t.Fatal("the config has no priority to leave out")
	}
	c.WriteConfig(config)
	if got := harness.ParseView(t, c.Run().OK(t).Stdout).IOPrio; got.Class != 3 || got.Level != 0 {
		t.Errorf("I/O priority %+v", got)
	}
}

// The kernel passes over the nice value of a real-time policy.
func TestNiceOfARealTimePolicy(t *testing.T) {
	b := harness.New(t)
	for policy, s := range map[int]specs.Scheduler{
		unix.SCHED_DEADLINE: {Policy: specs.SchedDeadline, Nice: 5, Runtime: 10e6, Deadline: 500e6, Period: 1e9, Flags: []specs.LinuxSchedulerFlag{specs.SchedFlagResetOnFork}},
		unix.SCHED_FIFO:     {Policy: specs.SchedFIFO, Nice: 5, Priority: 3},
	} {
		t.Run(string(s.Policy), func(t *testing.T) {
			c := b.Container("/inside", "look")
			c.Spec.Process.Scheduler = &s
			r := c.Run()
			if r.Code != 0 && strings.Contains(r.Stderr, "operation not permitted") {
				harness.Skip(t, "needs the right to schedule by %s in a cgroup", s.Policy)
			}
			if got := harness.ParseView(t, r.OK(t).Warns(t, "/process/scheduler/nice").Stdout).Sched; int(got.Policy) != policy {
				t.Errorf("scheduler %+v", got)
			}
		})
	}
}

// A letter that is no access says nothing; the others hold.
func TestDeviceAccessWithOtherLetters(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	// A number that few machines have a device for: what the cgroup lets through is told ENXIO
	// then.
	major, minor := int64(261), int64(7)
	c.Spec.Linux.Devices = []specs.LinuxDevice{{Path: "/dev/nothing", Type: "c", Major: major, Minor: minor}}
	harness.Refused(t, c.Try("open-device=/dev/nothing"), "open-device=/dev/nothing", "EPERM")
	c.Spec.Linux.Resources.Devices = append(c.Spec.Linux.Resources.Devices, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &major, Minor: &minor, Access: "rwa"})
	harness.Refused(t, c.Try("open-device=/dev/nothing"), "open-device=/dev/nothing", "ENXIO")
	c.Spec.Linux.Resources.Devices[len(c.Spec.Linux.Resources.Devices)-1].Access = "a"
	c.Run().Fails(t, "/linux/resources/devices/", "/access", `"a"`)
}

// A limit of zero is a limit of the kernel: the first process runs, and makes no other.
func TestPidsLimitZero(t *testing.T) {
	harness.Controller(t, "pids")
	b := harness.New(t)
	for _, userNS := range []bool{false, true} {
		c := b.Container("/bin/sh", "-c", "echo here; true & echo not here")
		if userNS {
			harness.UserNamespace(c.Spec)
		}
		c.Spec.Linux.Resources.Pids = &specs.LinuxPids{Limit: ptr(int64(0))}
		out, w := b.Pipe()
		c.Stdout = w
		c.Create()
		w.Close()
		if got := c.CgroupFile("pids", "pids.max", "pids.max"); got != "0" {
			t.Errorf("pids.max is %s", got)
		}
		c.Start()
		if got := out.All(); got != "here\n" {
			t.Errorf("the container said %q", got)
		}
		c.WaitExit()
		c.Delete()
	}
	// One process, as another runs in the namespaces that it makes first.
	c := b.Container("/bin/true")
	harness.UserNamespace(c.Spec)
	c.Spec.Linux.Resources.Pids = &specs.LinuxPids{Limit: ptr(int64(1))}
	c.Run().OK(t)
}

// A container can be created without a process; it is started by nobody.
func TestCreateWithoutAProcess(t *testing.T) {
	for _, userNS := range []bool{false, true} {
		b := harness.New(t)
		c := b.Container()
		if userNS {
			harness.UserNamespace(c.Spec)
		}
		c.Spec.Process = nil
		c.Create()
		if s := c.State(); s.Status != specs.StateCreated || s.Pid != c.PID {
			t.Errorf("state %+v", s)
		}
		status, err := os.ReadFile(procPath(c.PID, "status"))
		if err != nil {
			t.Fatal(err)
		}
		if got := statusField(string(status), "CapEff"); got != "0000000000000000" {
			t.Errorf("it has the capabilities %s", got)
		}
		c.Command("start", nil).Run().Fails(t, "config.json: /process")
		if s := c.State(); s.Status != specs.StateCreated {
			t.Errorf("after start: %s", s.Status)
		}
		b.Berth("explain", c.Dir).OK(t)
		c.Kill("KILL").WaitExit()
		c.Delete()
		c = b.Container()
		c.Spec.Process = nil
		c.Run().Fails(t, "config.json: /process")
		c.TryRunDetached().Fails(t, "config.json: /process")
		c.Command("state", nil).Run().Fails(t, "container does not exist")
	}
}
