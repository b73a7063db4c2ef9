package integration

import (
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
	"github.com/berth-runtime/berth/test/inside/view"
)

func TestScheduler(t *testing.T) {
	b := harness.New(t)
	for _, c := range []struct {
		name string
		in   specs.Scheduler
		want view.Sched
	}{
		{"other", specs.Scheduler{Policy: specs.SchedOther, Nice: 5}, view.Sched{Policy: unix.SCHED_NORMAL, Nice: 5}},
		{"batch", specs.Scheduler{Policy: specs.SchedBatch, Nice: 3}, view.Sched{Policy: unix.SCHED_BATCH, Nice: 3}},
		{"idle", specs.Scheduler{Policy: specs.SchedIdle}, view.Sched{Policy: unix.SCHED_IDLE}},
		{"fifo", specs.Scheduler{Policy: specs.SchedFIFO, Priority: 7}, view.Sched{Policy: unix.SCHED_FIFO, Priority: 7}},
		{"rr", specs.Scheduler{Policy: specs.SchedRR, Priority: 2, Flags: []specs.LinuxSchedulerFlag{specs.SchedFlagResetOnFork}},
			view.Sched{Policy: unix.SCHED_RR, Priority: 2, Flags: unix.SCHED_FLAG_RESET_ON_FORK}},
		// A process with a deadline may only start threads, as the helper does, that have none.
		{"deadline", specs.Scheduler{Policy: specs.SchedDeadline, Runtime: 10e6, Deadline: 500e6, Period: 1e9, Flags: []specs.LinuxSchedulerFlag{specs.SchedFlagResetOnFork}},
			view.Sched{Policy: unix.SCHED_DEADLINE, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Runtime: 10e6, Deadline: 500e6, Period: 1e9}},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The test's own cgroup may have no time for real-time processes (v1).
			container := b.Container("/inside", "look")
			container.Spec.Process.Scheduler = &c.in
			r := container.Run()
			if r.Code != 0 && c.want.Policy != unix.SCHED_NORMAL && strings.Contains(r.Stderr, "operation not permitted") {
				harness.Skip(t, "needs the right to schedule by policy %d in a cgroup", c.want.Policy)
			}
			got := harness.ParseView(t, r.OK(t).Stdout).Sched
			got.UtilMin, got.UtilMax = 0, 0
			if c.want.Policy != unix.SCHED_DEADLINE {
				got.Runtime = 0 // its time slice, since Linux 6.12
			}
			if c.want.Policy == unix.SCHED_IDLE {
				got.Nice = 0 // it has no meaning there, and stays what the caller of this test has
			}
			if got != c.want {
				t.Errorf("scheduler %+v, want %+v", got, c.want)
			}
		})
	}
}

// The flags for clamps of utilisation have no values in the specification: they stand for the
// system's defaults.
func TestSchedulerClamps(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "look")
	c.Spec.Process.Scheduler = &specs.Scheduler{Policy: specs.SchedOther, Nice: 2, Flags: []specs.LinuxSchedulerFlag{specs.SchedFlagUtilClampMin, specs.SchedFlagUtilClampMax}}
	r := c.Run()
	if unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Flags: unix.SCHED_FLAG_KEEP_ALL | unix.SCHED_FLAG_UTIL_CLAMP_MIN}, 0) == unix.EOPNOTSUPP {
		r.Fails(t, "/process/scheduler", "not supported")
		harness.Skip(t, "needs clamps of utilisation (CONFIG_UCLAMP_TASK)")
	}
	got := harness.ParseView(t, r.OK(t).Stdout).Sched
	if got.Nice != 2 || got.UtilMin != 0 || got.UtilMax != 1024 {
		t.Errorf("scheduler %+v", got)
	}
}

func TestIOPriority(t *testing.T) {
	b := harness.New(t)
	for class, number := range map[specs.IOPriorityClass]int{specs.IOPRIO_CLASS_RT: 1, specs.IOPRIO_CLASS_BE: 2, specs.IOPRIO_CLASS_IDLE: 3} {
		c := b.Container()
		c.Spec.Process.IOPriority = &specs.LinuxIOPriority{Class: class, Priority: 6}
		if got := c.Look().IOPrio; got.Class != number || got.Level != 6 {
			t.Errorf("%s: %+v", class, got)
		}
	}
}

func TestPersonality(t *testing.T) {
	b := harness.New(t)
	for domain, want := range map[specs.LinuxPersonalityDomain]uint64{specs.PerLinux: 0, specs.PerLinux32: 8} {
		c := b.Container()
		c.Spec.Linux.Personality = &specs.LinuxPersonality{Domain: domain}
		if got := c.Look().Persona & 0xff; got != want {
			t.Errorf("%s: %d, want %d", domain, got, want)
		}
	}
}

func TestMemoryPolicy(t *testing.T) {
	if _, _, errno := unix.RawSyscall6(unix.SYS_GET_MEMPOLICY, 0, 0, 0, 0, 0, 0); errno == unix.ENOSYS {
		harness.Skip(t, "needs memory policies (CONFIG_NUMA)")
	}
	b := harness.New(t)
	for mode, want := range map[specs.MemoryPolicyModeType]string{specs.MpolBind: "bind", specs.MpolInterleave: "interleave", specs.MpolPreferred: "prefer", specs.MpolLocal: "local"} {
		c := b.Container()
		c.Spec.Linux.MemoryPolicy = &specs.LinuxMemoryPolicy{Mode: mode, Nodes: "0"}
		if mode == specs.MpolLocal {
			c.Spec.Linux.MemoryPolicy.Nodes = ""
		}
		if got := c.Look().MemPol; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %s", mode, got, want)
		}
	}
}

func TestTimeOffsets(t *testing.T) {
	harness.NeedNamespace(t, "time")
	b := harness.New(t)
	c := b.Container()
	c.Spec.Linux.Namespaces = append(c.Spec.Linux.Namespaces, specs.LinuxNamespace{Type: specs.TimeNamespace})
	c.Spec.Linux.TimeOffsets = map[string]specs.LinuxTimeOffset{"monotonic": {Secs: 86400}, "boottime": {Secs: 172800, Nanosecs: 5}}
	v := c.Look()
	for _, want := range []string{"monotonic 86400 0", "boottime 172800 5"} {
		if !slices.ContainsFunc(v.Offsets, func(line string) bool { return strings.Join(strings.Fields(line), " ") == want }) {
			t.Errorf("offsets %q, want %q", v.Offsets, want)
		}
	}
	host := unix.Timespec{}
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &host); err != nil {
		t.Fatal(err)
	}
	c.Spec.Process.Args = []string{"/inside", "try", "clock=1"}
	got := harness.ParseAttempts(t, c.Run().OK(t).Stdout)["clock=1"].Result
	if seconds := atoi(t, got); int64(seconds) < host.Sec+86400 || int64(seconds) > host.Sec+86400+3600 {
		t.Errorf("the monotonic clock says %d in the container, %d outside", seconds, host.Sec)
	}
}
