package enforce

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/node/enforce/record"
	"github.com/berth-runtime/berth/node/machine/fake"
)

const everything = `
system-reserved: {cpu: 500m, memory: 1Gi, pids: 1000}
kube-reserved: {cpu: 250m, memory: 512Mi}
system-reserved-enforce: true
kube-reserved-enforce: true
pods-enforce: true
kernel-parameters: set
oom-scores: {kubelet: -999}
oom-score-mode: set
`

// machineWith is a fake node with a kubelet, and a limit that an operator set.
func machineWith(t *testing.T, mode string) *fake.Machine {
	m := fake.New(t, mode, true)
	m.Process(700, "kubelet", "/usr/bin/kubelet", "/kubernetes.slice/kubelet.service", "pid:[1]")
	m.Systemd.Service("kubelet.service", 700)
	m.Write("/run/systemd/system.control/system.slice.d/50-TasksMax.conf", "[Slice]\nTasksMax=5000\n")
	setNow(t, m, "system.slice", "TasksMax", 5000)
	return m
}

// attempt does something with an engine that is killed at the nth of its points;
// it gives how many points it came by, and whether it lived to the end.
func attempt(t *testing.T, m *fake.Machine, killAt int, do func(*Engine) error) (points int, lived bool) {
	t.Helper()
	m.Open()
	r, err := record.Open(m.Dir+"/state", m.BootID())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	type killed struct{}
	e := &Engine{Machine: m.Machine, Record: r, at: func(string) {
		if points++; points == killAt {
			panic(killed{})
		}
	}}
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(killed); !ok {
				panic(p)
			}
			lived = false
		}
	}()
	if err := do(e); err != nil {
		t.Fatal(err)
	}
	return points, true
}

func apply(t *testing.T, m *fake.Machine, text string) func(*Engine) error {
	return func(e *Engine) error {
		p, err := m.Prepare(context.Background(), m.Config(text))
		if err != nil {
			return err
		}
		return e.Apply(context.Background(), p)
	}
}

func undo(e *Engine) error { return e.Undo(context.Background()) }

// After a kill -9 at any point of Apply or Undo, the next one brings the node to
// where the first would have. Where more memory is used than is allowed, there are
// the points of reclaiming it, too.
func TestKilledAtEachPoint(t *testing.T) {
	for _, c := range []struct{ mode, lasting, used string }{
		{"unified", "runtime", "0"},
		{"unified", "runtime", "4294967296"},
		{"legacy", "persistent", "0"},
	} {
		t.Run(c.mode+" "+c.lasting+" "+c.used, func(t *testing.T) {
			text := everything + "properties: " + c.lasting + "\n"
			m := machineWith(t, c.mode)
			use := func() {
				if c.mode == "unified" {
					m.Write("/sys/fs/cgroup/system.slice/memory.current", c.used+"\n")
				}
			}
			// to does something with an engine that is killed at a point, and gives
			// what the machine is then, whatever is used of its memory.
			to := func(killAt int, do func(*Engine) error) (now string, points int, lived bool) {
				points, lived = attempt(t, m, killAt, do)
				use()
				return m.Snapshot(), points, lived
			}
			use()
			before := m.Snapshot()
			during, applying, _ := to(0, apply(t, m, text))
			if during == before || applying < 20 || c.used != "0" && applying < 30 {
				t.Fatalf("%d points, and this was done:\n%s", applying, diff(before, during))
			}
			after, undoing, _ := to(0, undo)
			same(t, "undo", before, after)
			for n := 1; n <= applying; n++ {
				if _, _, lived := to(n, apply(t, m, text)); lived {
					t.Fatalf("nobody was killed at %d of %d", n, applying)
				}
				after, _, _ := to(0, undo)
				same(t, fmt.Sprintf("undo after a kill at %d", n), before, after)
				to(n, apply(t, m, text))
				after, _, _ = to(0, apply(t, m, text))
				same(t, fmt.Sprintf("apply after a kill at %d", n), during, after)
				to(0, undo)
			}
			for n := 1; n <= undoing; n++ {
				to(0, apply(t, m, text))
				if _, _, lived := to(n, undo); lived {
					t.Fatalf("nobody was killed at %d of %d", n, undoing)
				}
				after, _, _ := to(0, undo)
				same(t, fmt.Sprintf("undo after an undo killed at %d", n), before, after)
			}
		})
	}
}

// What a new configuration does not ask for any more is given back.
func TestChangedConfiguration(t *testing.T) {
	m := machineWith(t, "unified")
	before := m.Snapshot()
	attempt(t, m, 0, apply(t, m, everything))
	attempt(t, m, 0, apply(t, m, "system-reserved: {cpu: 1}\nsystem-reserved-enforce: cpu\n"))
	if got := m.Read("/sys/fs/cgroup/system.slice/cpu.weight"); got != "100" {
		t.Errorf("weight %s", got)
	}
	if got := m.Read("/sys/fs/cgroup/system.slice/memory.max"); got != "max" {
		t.Errorf("memory.max is still %s", got)
	}
	if got := m.Read("/proc/sys/kernel/panic"); got != "0" {
		t.Errorf("kernel.panic is still %s", got)
	}
	attempt(t, m, 0, undo)
	same(t, "undo", before, m.Snapshot())
}

// Under systemd nothing but properties is changed: no cgroup is written to, and no
// process is moved.
func TestOnlyProperties(t *testing.T) {
	m := machineWith(t, "unified")
	attempt(t, m, 0, apply(t, m, everything))
	for _, call := range m.Systemd.Calls {
		if !strings.HasPrefix(call, "set ") && !strings.HasPrefix(call, "start ") {
			t.Errorf("%s", call)
		}
	}
	if got := m.Read("/proc/700/cgroup"); got != "0::/kubernetes.slice/kubelet.service" {
		t.Errorf("the kubelet is in %s", got)
	}
	if got := m.Read("/proc/700/oom_score_adj"); got != "-999" {
		t.Errorf("its OOM score is %s", got)
	}
	if procs := m.Read("/sys/fs/cgroup/kubernetes.slice/cgroup.procs"); procs != "" {
		t.Errorf("moved: %s", procs)
	}
}

// systemd may say yes and not do it.
func TestDeafSystemd(t *testing.T) {
	defer func(d time.Duration) { untilWritten = d }(untilWritten)
	untilWritten = time.Second
	m := machineWith(t, "unified")
	m.Systemd.Deaf = "CPUWeight"
	r, err := record.Open(m.Dir+"/state", m.BootID())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = apply(t, m, everything)(&Engine{Machine: m.Machine, Record: r})
	if err == nil || !strings.Contains(err.Error(), "node.yaml:2: system-reserved.cpu: systemd took it, but cpu.weight of /system.slice is \"100\"") {
		t.Errorf("%v", err)
	}
}

func same(t *testing.T, what, want, got string) {
	t.Helper()
	if want != got {
		t.Fatalf("%s left:\n%s", what, diff(want, got))
	}
}

// diff gives the lines that differ.
func diff(a, b string) string {
	lines := func(s string) map[string]bool {
		set := map[string]bool{}
		for l := range strings.Lines(s) {
			set[l] = true
		}
		return set
	}
	x, y := lines(a), lines(b)
	out := ""
	for l := range strings.Lines(a) {
		if !y[l] {
			out += "-" + l
		}
	}
	for l := range strings.Lines(b) {
		if !x[l] {
			out += "+" + l
		}
	}
	return out
}

func setNow(t *testing.T, m *fake.Machine, unit, property string, value uint64) {
	t.Helper()
	if err := m.Systemd.Set(context.Background(), unit, "runtime", []ledger.Property{{Name: property, Value: value}}); err != nil {
		t.Fatal(err)
	}
	m.Systemd.Calls = nil
}

// A limit that version 1 refuses leaves the one of before, and that is the one of an
// earlier plan where there was one.
func TestRefusedLimit(t *testing.T) {
	const file = "/sys/fs/cgroup/memory/system.slice/memory.limit_in_bytes"
	for _, earlier := range []string{"", "berth-parent: off\nsystem-reserved: {memory: 4Gi}\nsystem-reserved-enforce: true\n"} {
		m := machineWith(t, "legacy")
		start := m.Snapshot()
		if earlier != "" {
			attempt(t, m, 0, apply(t, m, earlier))
		}
		m.Write("/sys/fs/cgroup/memory/system.slice/memory.usage_in_bytes", "2147483648\n")
		before := m.Snapshot()
		attempt(t, m, 0, func(e *Engine) error {
			err := apply(t, m, "system-reserved: {memory: 1Gi}\nsystem-reserved-enforce: true\nreclaim-deadline: 100ms\nberth-parent: off\n")(e)
			var stuck *StuckError
			if !errors.As(err, &stuck) || stuck.Used != 2<<30 || !strings.Contains(err.Error(), "node.yaml:1: system-reserved.memory") {
				t.Errorf("%v", err)
			}
			return nil
		})
		same(t, "a refused limit after "+earlier, before, m.Snapshot())
		if got := m.Read(file); earlier != "" && got != "4294967296" {
			t.Errorf("the limit is %s", got)
		}
		m.Write("/sys/fs/cgroup/memory/system.slice/memory.usage_in_bytes", "0\n")
		attempt(t, m, 0, undo)
		same(t, "undo", start, m.Snapshot())
	}
}

// What was right when the plan was applied, and was changed by others and mended since, is given
// back as it was at first.
func TestUndoOfWhatWasRight(t *testing.T) {
	for _, mode := range []string{"unified", "legacy"} {
		m := machineWith(t, mode)
		attempt(t, m, 0, apply(t, m, everything))
		planned := map[string]string{}
		for _, file := range []string{"/proc/sys/kernel/panic", "/proc/700/oom_score_adj"} {
			planned[file] = m.Read(file)
		}
		attempt(t, m, 0, undo)
		for file, value := range planned {
			m.Write(file, value+"\n")
		}
		setNow(t, m, "system.slice", "TasksMax", 1000)
		m.Write("/run/systemd/system.control/system.slice.d/50-TasksMax.conf", "[Slice]\nTasksMax=1000\n")
		right := m.Snapshot()

		attempt(t, m, 0, apply(t, m, everything))
		m.Write("/proc/sys/kernel/panic", "7\n")
		m.Write("/proc/700/oom_score_adj", "7\n")
		setNow(t, m, "system.slice", "TasksMax", 7)
		m.Write("/run/systemd/system.control/system.slice.d/50-TasksMax.conf", "[Slice]\nTasksMax=7\n")
		attempt(t, m, 0, apply(t, m, everything))
		for file, value := range planned {
			if got := m.Read(file); got != value {
				t.Errorf("%s: %s is %s, not mended", mode, file, got)
			}
		}
		attempt(t, m, 0, undo)
		same(t, mode, right, m.Snapshot())
	}
}
