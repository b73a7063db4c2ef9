package watch

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/berth-runtime/berth/node/machine/fake"
)

const scores = `
oom-scores: {kubelet: -999, my.service: -900}
oom-score-mode: set
kernel-parameters: off
recheck-interval: 1h
`

func rootOnly(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("the executables of the host's daemons are root's, and this test is not")
	}
}

func (r *running) awaitScore(pid int, want string) {
	r.t.Helper()
	r.await(fmt.Sprintf("process %d has the score %s", pid, want), func() bool { return r.m.Read(fmt.Sprintf("/proc/%d/oom_score_adj", pid)) == want })
}

// A daemon that starts later, or anew, has its score as soon as systemd tells of it:
// the look at everything is an hour away.
func TestScoresOfUnitsThatStart(t *testing.T) {
	rootOnly(t)
	m := fake.New(t, "unified", true)
	m.Process(700, "kubelet", "/usr/bin/kubelet", "/kubernetes.slice/other-name.service", "pid:[1]")
	m.Systemd.Service("other-name.service", 700)
	r := startOn(m, t, scores)
	r.awaitReady()
	r.awaitScore(700, "-999")

	m.Remove("/proc/700")
	m.Process(701, "kubelet", "/usr/bin/kubelet", "/kubernetes.slice/other-name.service", "pid:[1]")
	m.Systemd.Signals <- "other-name.service" // known by the one that has ended
	r.awaitScore(701, "-999")

	m.Process(702, "anything", "/opt/anything", "/system.slice/my.service", "pid:[1]")
	m.Systemd.Service("my.service", 702)
	m.Systemd.Signals <- "my.service"
	r.awaitScore(702, "-900")
}

// A score that is changed by others is set back at once, also one that was right from the
// beginning, and it is told who did it.
func TestScoreIsChanged(t *testing.T) {
	rootOnly(t)
	m := fake.New(t, "unified", true)
	m.Process(700, "kubelet", "/usr/bin/kubelet", "/kubernetes.slice/kubelet.service", "pid:[1]")
	m.Systemd.Service("kubelet.service", 700)
	m.Write("/proc/700/oom_score_adj", "-999\n")
	r := startOn(m, t, scores)
	r.awaitReady()
	r.byHand("-100", "/proc/700/oom_score_adj")
	r.awaitSaid("kubelet pid 700 is -100 where node.yaml:2: oom-scores.kubelet wants -999; changed by ")
	r.awaitScore(700, "-999")
}

// Without systemd the end of a daemon is told by its pidfd, and the next one looked for.
func TestScoresOfDaemonsThatStartAgain(t *testing.T) {
	rootOnly(t)
	run := func() *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
		return cmd
	}
	first, second := run(), run()
	m := fake.New(t, "unified", false)
	m.Process(first.Process.Pid, "kubelet", "/usr/bin/kubelet", "/", "pid:[1]")
	r := startOn(m, t, scores)
	r.awaitReady()
	r.awaitScore(first.Process.Pid, "-999")

	m.Remove(fmt.Sprintf("/proc/%d", first.Process.Pid))
	first.Process.Kill()
	first.Wait()
	m.Process(second.Process.Pid, "kubelet", "/usr/bin/kubelet", "/", "pid:[1]")
	r.awaitScore(second.Process.Pid, "-999")
}
