package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/node/machine/fake"
)

// full is a machine with containers of several scores and sizes, and too little memory.
func full(t *testing.T) *fake.Machine {
	t.Helper()
	m := fake.New(t, "unified", false)
	for pid, c := range map[int]struct {
		at, score string
		memory    int
	}{
		10: {"/machine/docker/00000000000a", "0", 900},
		11: {"/machine/docker/00000000000b", "500", 100},
		12: {"/machine/docker/00000000000c", "500", 200},
		13: {"/machine/docker/00000000000d", "-1000", 5000},
		14: {"/docker/00000000000e", "1000", 9000}, // outside of the workloads
	} {
		m.Run(pid, c.at, "pid:[2]")
		m.Write(fmt.Sprintf("/proc/%d/oom_score_adj", pid), c.score+"\n")
		m.Write("/sys/fs/cgroup"+c.at+"/memory.current", fmt.Sprintf("%d\n", c.memory<<20))
	}
	m.Process(30, "sh", "/bin/sh", "/machine/docker/00000000000b", "pid:[2]")
	m.Write("/proc/30/oom_score_adj", "900\n") // it has raised its own, which doesn't count
	m.Write("/sys/fs/cgroup/machine/docker/00000000000b/cgroup.procs", "11\n30\n")
	m.Write("/proc/meminfo", "MemTotal:        8388608 kB\nMemAvailable:      90000 kB\n")
	m.Write("/proc/loadavg", "0.1 0.1 0.1 1/1000 77\n")
	return m
}

const evicting = "eviction-hard: {memory.available: 100Mi}\nkernel-parameters: off\noom-score-mode: off\nberth-parent: off\n"

// Where no kubelet evicts, the containers of the lowest priority are killed first, and of those the
// largest; none that is outside, and none that is protected.
func TestEviction(t *testing.T) {
	r := startOn(full(t), t, evicting+"eviction: kill\n")
	r.awaitSaid("no container of the workloads can be killed")
	r.mu.Lock()
	defer r.mu.Unlock()
	if want := []string{"/machine/docker/00000000000c", "/machine/docker/00000000000b", "/machine/docker/00000000000a"}; !slices.Equal(r.killed, want) {
		t.Errorf("%q, want %q", r.killed, want)
	}
	said := r.said.String()
	if want := "killed docker/00000000000c (/machine/docker/00000000000c): memory.available is 87.9Mi where node.yaml:2: eviction-hard.memory.available wants 100.0Mi; of 3 containers it was the first, with OOM score 500 and 200.0Mi of memory"; !strings.Contains(said, strings.Replace(want, "node.yaml:2", "node.yaml:1", 1)) {
		t.Errorf("%q is missing in\n%s", want, said)
	}
	_, text := r.get("/metrics")
	if !strings.Contains(text, "berth_node_evictions_total{resource=\"memory\"} 3\n") {
		t.Error(text)
	}
}

// Tasks are evicted for as memory is, by how many there are.
func TestEvictionOfTasks(t *testing.T) {
	m := full(t)
	m.Write("/proc/meminfo", "MemTotal:        8388608 kB\nMemAvailable:   4000000 kB\n")
	m.Write("/proc/loadavg", "0.1 0.1 0.1 1/32000 77\n")
	m.Write("/sys/fs/cgroup/machine/docker/00000000000b/pids.current", "700\n")
	r := startOn(m, t, strings.Replace(evicting, "memory.available: 100Mi", "memory.available: 100Mi, pid.available: 1000", 1)+"eviction: kill\n")
	r.awaitSaid("killed docker/00000000000b")
	r.awaitSaid("pid.available is 768 where")
}

// Nothing is killed unless it was asked for, or where a kubelet does it.
func TestNoEviction(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		change func(m *fake.Machine)
	}{
		"not asked for": {evicting, func(*fake.Machine) {}},
		"a kubelet":     {evicting + "eviction: kill\n", func(m *fake.Machine) { m.Write("/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\n") }},
		"enough is left": {evicting + "eviction: kill\n", func(m *fake.Machine) {
			m.Write("/proc/meminfo", "MemTotal:        8388608 kB\nMemAvailable:    200000 kB\n")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := full(t)
			c.change(m)
			r := startOn(m, t, c.text)
			r.awaitReady()
			e := &evictor{d: r.d, killed: nil}
			r.end() // so that nothing else looks
			e.look()
			if len(r.killed) > 0 {
				t.Errorf("%q", r.killed)
			}
		})
	}
}
