package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	deploy "github.com/berth-runtime/berth/build/deploy/node"
)

const everything = `
system-reserved: {cpu: 500m, memory: 512Mi}
kube-reserved: {cpu: 250m, memory: 256Mi}
eviction-hard: {memory.available: 100Mi}
system-reserved-enforce: true
kube-reserved-enforce: cpu
pods-enforce: true
kernel-parameters: set
`

func TestUndoGivesTheNodeBack(t *testing.T) {
	m := mine(t)
	m.configure(everything)
	before := m.snapshot()
	for _, lasting := range []string{"runtime", "persistent"} {
		m.node("apply", "--properties="+lasting)
		if got := m.read(limitOf("system.slice")); got != "536870912" {
			t.Errorf("the limit of system.slice is %s", got)
		}
		if plan := m.node("plan"); !strings.Contains(plan, "none: all ") {
			t.Errorf("something is left to do:\n%s", plan)
		}
		m.node("undo")
		if after := m.snapshot(); after != before {
			t.Errorf("%s: before:\n%s\nafter:\n%s", lasting, before, after)
		}
	}
}

// A kill -9 at whatever moment of apply leaves what undo gives back.
func TestKilledApply(t *testing.T) {
	m := mine(t)
	m.configure(everything)
	before := m.snapshot()
	whole := m.run("sh", "-c", fmt.Sprintf("s=$(date +%%s%%N); %s apply --config %s > /dev/null 2>&1; e=$(date +%%s%%N); echo $(((e - s) / 1000000))", m.program, m.conf))
	m.node("undo")
	ms, err := strconv.Atoi(whole)
	if err != nil {
		t.Fatal(err)
	}
	const kills = 4
	for i := 1; i <= kills; i++ {
		apply := exec.Command(m.program, "apply", "--config", m.conf)
		if err := apply.Start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Duration(i*ms/(kills+1))*time.Millisecond, func() { apply.Process.Kill() })
		apply.Wait()
		if i%2 == 0 {
			m.node("apply") // the next start goes on from there
			if plan := m.node("plan"); !strings.Contains(plan, "none: all ") {
				t.Errorf("after a kill something is left to do:\n%s", plan)
			}
		}
		m.node("undo")
		if after := m.snapshot(); after != before {
			t.Fatalf("killed after %d of %d: before:\n%s\nafter:\n%s", i, kills, before, after)
		}
	}
}

// daemon starts berth-node as it is shipped.
func (m *machine) daemon(text string) {
	m.Helper()
	unit := strings.Replace(deploy.Unit, "/usr/bin/berth-node watch", m.program+" watch --config /run/berth-node-test.yaml", 1)
	if unit == deploy.Unit {
		m.Fatal("the unit does not start /usr/bin/berth-node")
	}
	m.write("/run/berth-node-test.yaml", text)
	m.write("/run/systemd/system/berth-node.service", unit)
	m.Cleanup(func() {
		m.try("systemctl", "stop", "berth-node")
		m.try(m.program, "undo")
		os.Remove("/run/systemd/system/berth-node.service")
		m.try("systemctl", "daemon-reload")
	})
	m.run("systemctl", "daemon-reload")
	m.run("systemctl", "start", "berth-node")
}

// What is changed by hand is found and mended, and told in the journal.
func TestDriftByHand(t *testing.T) {
	m := mine(t)
	before := m.snapshot()
	m.daemon(everything)
	for _, c := range []struct {
		name   string
		change func()
		path   func() string
		want   string
		said   string
	}{
		{"echo into a file", func() { shell(t, "echo 700M > "+limitOf("system.slice")) }, func() string { return limitOf("system.slice") }, "536870912",
			"system.slice MemoryMax is 734003200 where /run/berth-node-test.yaml:2: system-reserved.memory wants 536870912; changed " + byShell(t)},
		{"systemctl set-property", func() { m.run("systemctl", "set-property", "--runtime", "machine.slice", "TasksMax=77") }, func() string { return file("machine.slice", "pids.max") }, "",
			"machine.slice TasksMax is 77 where /run/berth-node-test.yaml:7: pods-enforce wants"},
		{"a property of version 2 on any version", func() { m.run("systemctl", "set-property", "--runtime", "system.slice", "MemoryMax=900M") }, func() string { return limitOf("system.slice") }, "536870912",
			"changed through systemd, as by systemctl set-property (/run/systemd/system.control/system.slice.d/50-MemoryMax.conf, written"},
		{"sysctl", func() { shell(t, "echo 3 > /proc/sys/kernel/panic") }, func() string { return "/proc/sys/kernel/panic" }, "10",
			"kernel.panic is 3 where /run/berth-node-test.yaml:8: kernel-parameters wants 10; changed by "},
		{"a slice that is stopped", func() { m.run("systemctl", "stop", "kubernetes.slice") }, func() string { return file("kubernetes.slice", "cpu.weight", "cpu.shares") }, "",
			"kubernetes.slice is active again"},
	} {
		want := c.want
		if want == "" {
			want = m.read(c.path())
		}
		c.change()
		took := m.await(c.name+" is mended", func() bool {
			text, err := os.ReadFile(c.path())
			return err == nil && strings.TrimSpace(string(text)) == want
		})
		m.await(c.name+" is told: "+c.said, func() bool {
			text, _ := m.try("journalctl", "-b", "-u", "berth-node", "-o", "cat", "--no-pager")
			return strings.Contains(text, c.said)
		})
		t.Logf("%s: mended after %.2f s", c.name, took.Seconds())
	}
	fields := m.run("journalctl", "-b", "-o", "json", "--no-pager", "BERTH_NODE_EVENT=drift", "BERTH_NODE_SETTING=MemoryMax")
	for _, want := range []string{`"BERTH_NODE_WANTED":"536870912"`, `"BERTH_NODE_FOUND":"734003200"`, `"BERTH_NODE_WHO":"` + byShell(t)} {
		if !strings.Contains(fields, want) {
			t.Errorf("%s is not in the journal's fields: %s", want, fields)
		}
	}
	if exists("/sys/fs/cgroup/cgroup.controllers") {
		pid := m.run("systemctl", "show", "-P", "MainPID", "berth-node")
		if got := m.read("/proc/" + pid + "/cgroup"); got != "0::/berth.slice/berth-node.service/supervisor" {
			t.Errorf("the daemon is in %s", got)
		}
	}

	// A reload that is wrong is not taken; one that is right is.
	m.write("/run/berth-node-test.yaml", "x: 1\n")
	m.run("systemctl", "reload", "berth-node")
	m.await("a wrong configuration is told", func() bool {
		text, _ := m.try("journalctl", "-b", "-u", "berth-node", "-o", "cat", "--no-pager")
		return strings.Contains(text, "the previous one stays in effect: /run/berth-node-test.yaml:1: there is no key x")
	})
	m.write("/run/berth-node-test.yaml", strings.Replace(everything, "512Mi", "600Mi", 1))
	m.run("systemctl", "reload", "berth-node")
	m.await("the new limit", func() bool { return m.read(limitOf("system.slice")) == "629145600" })

	// Killed, it is started again, goes on, and mends what was changed meanwhile.
	pid, err := strconv.Atoi(m.run("systemctl", "show", "-P", "MainPID", "berth-node"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	m.run("sh", "-c", "echo 700M > "+limitOf("system.slice"))
	m.await("the daemon is back and has mended", func() bool { return m.read(limitOf("system.slice")) == "629145600" })
	m.run("systemctl", "stop", "berth-node")
	m.run(m.program, "undo")
	if after := m.snapshot(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// total is the memory of the machine, in bytes.
func (m *machine) total() int64 {
	m.Helper()
	for line := range strings.Lines(m.read("/proc/meminfo")) {
		if words := strings.Fields(line); words[0] == "MemTotal:" {
			n, err := strconv.ParseInt(words[1], 10, 64)
			if err != nil {
				m.Fatal(err)
			}
			return n << 10
		}
	}
	m.Fatal("no MemTotal")
	return 0
}

// leaving gives a reservation that leaves so much to the workloads, and enforces that.
func (m *machine) leaving(bytes int64) string {
	return fmt.Sprintf("system-reserved: {memory: %d}\npods-enforce: true\nkernel-parameters: off\n", m.total()-bytes)
}

// A hog among the workloads is killed by their limit; who is in system.slice keeps
// what he has.
func TestMemoryHogIsKilled(t *testing.T) {
	m := mine(t)
	m.configure(m.leaving(128<<20) + "reserved-protect: false\n")
	m.node("apply")
	daemon := m.use("system.slice", "memory=100000000")
	hog := m.use("machine.slice", "memory=400000000")
	m.await("the hog is killed", func() bool { return !m.active(hog) })
	// On version 1 systemd sees the signal only.
	if result := m.run("systemctl", "show", "-P", "Result", hog); result != "oom-kill" && result != "signal" {
		t.Errorf("the hog ended by %s", result)
	}
	if !m.active(daemon) {
		t.Error("the daemon in system.slice is gone too")
	}
}

// Two that want a whole processor get it as the reservations say.
func TestProcessorIsSharedAsReserved(t *testing.T) {
	m := mine(t)
	// The guest has two processors: 0.5 for the system, 1.5 for workloads.
	m.configure("system-reserved: {cpu: 500m}\nsystem-reserved-enforce: cpu\npods-enforce: cpu\nkernel-parameters: off\n")
	m.node("apply")
	daemon := m.use("system.slice", "processor", "-p", "CPUAffinity=0", "-p", "CPUAccounting=yes")
	hog := m.use("machine.slice", "processor", "-p", "CPUAffinity=0", "-p", "CPUAccounting=yes")
	used := func(unit string) int64 {
		n, _ := strconv.ParseInt(m.run("systemctl", "show", "-P", "CPUUsageNSec", unit), 10, 64)
		return n
	}
	// On a machine that is busy otherwise a processor stands still for long, and whoever
	// is on it then is charged; that evens out over a longer time, and only that.
	const enough, most = 3e9, 40e9
	system0, work0 := used(daemon), used(hog)
	var system, work float64
	m.await("enough was shared out", func() bool {
		time.Sleep(200 * time.Millisecond)
		system, work = float64(used(daemon)-system0), float64(used(hog)-work0)
		return system+work > enough && work > 2*system && work < 4.5*system || system+work > most
	})
	ratio := work / system
	t.Logf("workloads %.2f s, system %.2f s: %.2f to 1", work/1e9, system/1e9, ratio)
	if ratio < 2 || ratio > 4.5 {
		t.Errorf("1.5 and 0.5 came out as %.2f to 1", ratio)
	}
}

// Memory is reclaimed before its limit is lowered; what can't be reclaimed lives, and
// keeps its limit.
func TestMemoryIsLoweredWithCare(t *testing.T) {
	m := mine(t)
	m.configure(m.leaving(512 << 20))
	m.node("apply")
	limit := m.read(limitOf("machine.slice"))
	cache := m.use("machine.slice", "cache="+filepath.Join(t.TempDir(), "file"))
	m.configure(m.leaving(96<<20) + "reclaim-pressure: 100%\n")
	m.node("apply")
	if got := m.read(limitOf("machine.slice")); got == limit {
		t.Error("the limit was not lowered, though all of it can be reclaimed")
	}
	m.run("systemctl", "stop", cache)
	m.configure(m.leaving(512 << 20))
	m.node("apply")

	live := m.use("machine.slice", "memory=200000000")
	m.configure(m.leaving(96<<20) + "reclaim-deadline: 2s\n")
	out, err := m.try(m.program, "apply", "--config", m.conf)
	if err == nil || !strings.Contains(out, "of memory: ") || !strings.Contains(out, "nothing was killed and the former limit holds again") {
		t.Errorf("%v: %s", err, out)
	}
	t.Log(out)
	if got := m.read(limitOf("machine.slice")); got != limit {
		t.Errorf("the limit is %s, and was %s", got, limit)
	}
	if high := file("machine.slice", "memory.high"); exists(high) && m.read(high) != "max" {
		t.Errorf("memory.high is still %s", m.read(high))
	}
	if !m.active(live) {
		t.Error("it was killed")
	}
}

// kubelet runs a program of that name in a unit.
func (m *machine) kubelet(args ...string) {
	m.Helper()
	// Type=exec: it has that name when systemd-run comes back, and not some time after.
	m.run("systemd-run", append(append([]string{"--quiet", "-p", "Type=exec"}, args...), m.kubeletProgram(), "1000")...)
	m.Cleanup(func() { m.try("systemctl", "stop", "kubelet-test.service") })
}

// kubeletOfSession runs it in a scope of a user's slice, as a session's shell would.
func (m *machine) kubeletOfSession(scope string) {
	m.Helper()
	cmd := exec.Command("systemd-run", "--quiet", "--scope", "--slice=user-1000.slice", "--unit="+scope, m.kubeletProgram(), "1000")
	if err := cmd.Start(); err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() {
		m.try("systemctl", "stop", scope)
		cmd.Wait()
	})
	m.await("the kubelet runs in "+scope, func() bool {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
		return string(name) == "kubelet\n"
	})
}

// kubeletProgram is a program of that name, which is root's.
func (m *machine) kubeletProgram() string {
	m.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		m.Fatal(err)
	}
	dir, err := os.MkdirTemp("/root", "kubelet-")
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "kubelet")
	m.run("cp", sleep, program)
	return program
}

func TestKubeletPlacement(t *testing.T) {
	m := mine(t)
	m.configure("oom-scores: {kubelet: -999}\noom-score-mode: set\nkernel-parameters: off\n")
	m.kubelet("--unit=kubelet-test.service")
	out := m.node("plan")
	if !strings.Contains(out, "is in kubelet-test.service, inside the system container /system.slice") {
		t.Errorf("no warning:\n%s", out)
	}
	pid := m.run("systemctl", "show", "-P", "MainPID", "kubelet-test.service")
	m.node("apply")
	if got := m.read("/proc/" + pid + "/oom_score_adj"); got != "-999" {
		t.Errorf("its OOM score is %s", got)
	}
	m.node("undo")
	if got := m.read("/proc/" + pid + "/oom_score_adj"); got != "0" {
		t.Errorf("after undo its OOM score is %s", got)
	}
	m.run("systemctl", "stop", "kubelet-test.service")
	m.kubelet("--unit=kubelet-test.service", "--slice=kubernetes.slice")
	if out := m.node("plan"); strings.Contains(out, "kubelet (pid") {
		t.Errorf("a warning where all is well:\n%s", out)
	}
	if out := m.node("status"); !strings.Contains(out, "The kubelet is in /kubernetes.slice/kubelet-test.service") {
		t.Errorf("its own slice was not found:\n%s", out)
	}
	// As from a terminal: logind has such a scope for each session.
	m.run("systemctl", "stop", "kubelet-test.service")
	m.kubelet("--unit=kubelet-test.service", "--slice=user-1000.slice")
	if out := m.node("plan"); strings.Contains(out, "from a terminal") {
		t.Errorf("a service is not a session:\n%s", out)
	}
	m.run("systemctl", "stop", "kubelet-test.service")
	m.kubeletOfSession("session-77.scope")
	if out := m.node("plan"); !strings.Contains(out, "was started from a terminal: it is in session-77.scope (/user.slice/user-1000.slice/session-77.scope)") {
		t.Errorf("no warning:\n%s", out)
	}
	if out := m.node("status"); !strings.Contains(out, "The kubelet is in /user.slice/user-1000.slice/session-77.scope, which uses ") {
		t.Errorf("the scope's use is not shown:\n%s", out)
	}
}

// A daemon that is started anew has its OOM score without a wait for the next look at
// everything.
func TestScoreOfARestartedDaemon(t *testing.T) {
	m := mine(t)
	m.kubelet("--unit=kubelet-test.service", "-p", "Restart=always", "-p", "RestartSec=100ms")
	m.daemon("oom-scores: {kubelet: -999}\noom-score-mode: set\nkernel-parameters: off\nrecheck-interval: 1h\n")
	for range 2 {
		pid := m.run("systemctl", "show", "-P", "MainPID", "kubelet-test.service")
		m.await("process "+pid+" has its score", func() bool {
			text, _ := os.ReadFile("/proc/" + pid + "/oom_score_adj")
			return strings.TrimSpace(string(text)) == "-999"
		})
		m.run("kill", "-KILL", pid)
		m.await("there is another one", func() bool {
			now := m.run("systemctl", "show", "-P", "MainPID", "kubelet-test.service")
			return now != "0" && now != pid
		})
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	m := mine(t)
	for text, want := range map[string]string{
		"system-container: /nosuch":      m.conf + ":1: system-container: there is no cgroup /nosuch.slice: the system container is systemd's, and berth-node does not create it; name one that exists",
		"resource-container: /kubelet":   m.conf + ":1: resource-container: not under systemd, which has started the kubelet and placed it in the cgroup of its unit already; set Slice=",
		"cgroup-driver: cgroupfs":        m.conf + ":1: cgroup-driver: systemd is the init system here and owns the tree",
		"system-reserved: {memory: 9Ti}": m.conf + ":1: system-reserved.memory: more memory is reserved",
	} {
		m.configure(text)
		out, err := m.try(m.program, "apply", "--config", m.conf)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(out, "berth-node: "+want) || strings.Contains(out, "\n") {
			t.Errorf("%s: %v\n%s\nwant one line with %s", text, err, out, want)
		}
	}
}
