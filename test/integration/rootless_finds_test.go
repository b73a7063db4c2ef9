package integration

import (
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// An ordinary user may raise the score of their processes, or say what it is anyway; to lower it
// takes more.
func TestOrdinaryUserOOMScore(t *testing.T) {
	for _, score := range []int{0, 500, 1000} {
		t.Run(strconv.Itoa(score), func(t *testing.T) {
			b := harness.New(t)
			u := b.AsOrdinaryUser(t, 0)
			c := u.Container("/inside", "hang")
			c.Spec.Process.OOMScoreAdj = &score
			c.RunDetached()
			if got := strings.TrimSpace(readFile(t, procPath(c.PID, "oom_score_adj"))); got != strconv.Itoa(score) {
				t.Errorf("the first process's score is %s", got)
			}
			if got := strings.TrimSpace(c.Exec(nil, "/bin/cat", "/proc/self/oom_score_adj").OK(t).Stdout); got != strconv.Itoa(score) {
				t.Errorf("an added process's score is %s", got)
			}
		})
	}
	b := harness.New(t)
	c := b.AsOrdinaryUser(t, 0).Container("/bin/cat", "/proc/self/oom_score_adj")
	c.Spec.Process.OOMScoreAdj = ptr(-900)
	c.Run().FailsWith(t, 1, "/process/oomScoreAdj", "permission denied", "CAP_SYS_RESOURCE")
}

// An ordinary user's container can be joined before its start.
func TestOrdinaryUserExecsBeforeStart(t *testing.T) {
	b := harness.New(t)
	c := b.AsOrdinaryUser(t, 0).Container("/inside", "hang")
	c.Create()
	if got := c.Exec(nil, "/bin/cat", "/proc/1/comm").OK(t).Stdout; got == "" {
		t.Error("it sees no first process")
	}
	c.Start()
	c.Exec(nil, "/bin/true").OK(t)
}

// The clocks of an ordinary user's time namespace.
func TestOrdinaryUserTimeOffsets(t *testing.T) {
	harness.NeedNamespace(t, "time")
	b := harness.New(t)
	c := b.AsOrdinaryUser(t, 0).Container("/bin/cat", "/proc/self/timens_offsets")
	c.Spec.Linux.Namespaces = append(c.Spec.Linux.Namespaces, specs.LinuxNamespace{Type: specs.TimeNamespace})
	c.Spec.Linux.TimeOffsets = map[string]specs.LinuxTimeOffset{"boottime": {Secs: 86400}}
	if got := strings.Join(strings.Fields(c.Run().OK(t).Stdout), " "); !strings.Contains(got, "boottime 86400 0") {
		t.Errorf("the clocks are %s", got)
	}
}

// A file of the host's that is mounted where the user may not unmount, as AsOrdinaryUser does it.
func TestOrdinaryUserWithoutPivot(t *testing.T) {
	b := harness.New(t)
	c := b.AsOrdinaryUser(t, 0).Container("/inside", "look", "/inside")
	v := harness.ParseView(t, c.Run("--no-pivot").OK(t).Stdout)
	if v.Files["/inside"].Error != "" {
		t.Errorf("%+v", v.Files["/inside"])
	}
	harness.MountAt(t, v, "/proc")
}

// Where there is no cgroup to be had, a mount of cgroups shows those that the container is in: its
// caller's.
func TestOrdinaryUserSeesHisCallersCgroup(t *testing.T) {
	b := harness.New(t)
	c := b.AsOrdinaryUser(t, 0).Container("/bin/cat", "/proc/self/mountinfo")
	c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup"})
	seen := 0
	for _, line := range c.Run().OK(t).Lines() {
		before, after, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(before); strings.HasPrefix(after, "cgroup") {
			seen++
			if fields[3] != "/" { // of the cgroup namespace, which begins at the caller's cgroup
				t.Errorf("it sees %s on %s", fields[3], fields[4])
			}
		}
	}
	if seen == 0 {
		t.Error("no cgroup is mounted")
	}
}

// Limits that an ordinary user can't have come with the way to get them.
func TestOrdinaryUserWithLimits(t *testing.T) {
	b := harness.New(t)
	c := b.AsOrdinaryUser(t, 0).Container("/bin/true")
	c.Spec.Linux.Resources = &specs.LinuxResources{Pids: &specs.LinuxPids{Limit: ptr(int64(20))}}
	c.Run().FailsWith(t, 1, "permission denied", wayToLimits(t))
	c.Spec.Linux.Resources = nil
	c.Spec.Process.Args = []string{"/inside", "hang"}
	c.RunDetached()
	update(c, "--pids-limit", "20").FailsWith(t, 1, "has no cgroup of its own", "systemd-run --user --scope")
}

// What is counted by other things than a cgroup is told of a container without one.
func TestEventsWithoutACgroup(t *testing.T) {
	b := harness.New(t)
	c := b.AsOrdinaryUser(t, 0).Container("/inside", "hang").RunDetached()
	var e event
	harness.Decode(t, c.Command("events", []string{"--stats"}).Run().OK(t).Stdout, &e)
	if e.Type != "stats" || e.ID != c.ID || e.Data == nil || e.Data.Interfaces == nil || e.Data.Hugetlb == nil {
		t.Errorf("%+v", e)
	}
	stream := c.Command("events", []string{"--interval", "50ms"})
	out, w := b.Pipe()
	stream.Stdout = w
	done := stream.Start()
	w.Close()
	out.Until(`"stats"`)
	c.Kill("KILL").WaitExit()
	done.Wait().OK(t)
}
