package integration

import (
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// An ordinary user may raise the score of his processes, or say what it is anyway; to lower it takes more, and is told.
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
	r := c.Run().OK(t)
	r.Warns(t, "/process/oomScoreAdj", "CAP_SYS_RESOURCE")
	if got, own := r.Stdout, readFile(t, "/proc/self/oom_score_adj"); got != own {
		t.Errorf("the score is %q, not its caller's %q", got, own)
	}
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
