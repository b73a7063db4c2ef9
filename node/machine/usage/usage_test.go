package usage

import (
	"context"
	"testing"

	"github.com/berth-runtime/berth/node/machine/fake"
	"github.com/berth-runtime/berth/node/plan"
)

// On version 1 the counters have other names and are in several places.
func TestLegacy(t *testing.T) {
	m := fake.New(t, "legacy", true)
	const scope = "/machine.slice/docker-1.scope"
	m.Group("/machine.slice")
	m.Group(scope)
	m.Write("/sys/fs/cgroup/pids"+scope+"/cgroup.procs", "7\n8\n")
	m.Write("/sys/fs/cgroup/pids"+scope+"/pids.current", "2\n")
	m.Write("/sys/fs/cgroup/memory"+scope+"/memory.usage_in_bytes", "5000\n")
	m.Write("/sys/fs/cgroup/memory"+scope+"/memory.stat", "inactive_file 1\nrss 7\ntotal_inactive_file 1000\n")
	m.Group("/machine.slice/empty.scope")
	// As the kernel sums it up, with what an ended container has left.
	m.Write("/sys/fs/cgroup/pids/machine.slice/pids.current", "2\n")
	m.Write("/sys/fs/cgroup/memory/machine.slice/memory.usage_in_bytes", "5500\n")
	m.Write("/sys/fs/cgroup/memory/machine.slice/memory.stat", "inactive_file 0\ntotal_inactive_file 1000\n")
	p, err := m.Prepare(context.Background(), m.Config(""))
	if err != nil {
		t.Fatal(err)
	}
	all := Measure(m.Machine, p).Workloads()
	if all.Containers != 1 || all.Use.Memory != 4500 || all.Use.PIDs != 2 {
		t.Errorf("%+v", all)
	}
}

// What a container makes inside of its own cgroup is not another container, and
// without systemd the cgroups below the root are the containers.
func TestNested(t *testing.T) {
	m := fake.New(t, "unified", false)
	for _, path := range []string{"/machine", "/machine/a", "/machine/a/inner", "/machine/b"} {
		m.Group(path)
		m.Write("/sys/fs/cgroup"+path+"/cgroup.events", "populated 1\n")
		m.Write("/sys/fs/cgroup"+path+"/memory.current", "1000\n")
		m.Write("/sys/fs/cgroup"+path+"/memory.stat", "inactive_file 100\n")
		m.Write("/sys/fs/cgroup"+path+"/cpu.stat", "usage_usec 5\n")
	}
	// As the kernel sums it up.
	m.Write("/sys/fs/cgroup/machine/cpu.stat", "usage_usec 10\n")
	m.Write("/sys/fs/cgroup/machine/memory.current", "2000\n")
	m.Write("/sys/fs/cgroup/machine/memory.stat", "inactive_file 200\n")
	p, err := m.Prepare(context.Background(), m.Config(""))
	if err != nil {
		t.Fatal(err)
	}
	r := Measure(m.Machine, p)
	if all := r.Workloads(); all.Containers != 2 || all.Use.Memory != 1800 || all.Use.CPU != 10000 {
		t.Errorf("%+v", all)
	}
	if top := r.Parts[plan.Workloads]; top.Memory != 1800 {
		t.Errorf("%+v", top)
	}
	if first := Processors(m.Machine, p); first.Workloads().Use.CPU != 10000 || first.Workloads().Containers != 0 || first.Parts[plan.Workloads].CPU != 10000 {
		t.Errorf("%+v", first)
	}
}

// What a QoS level uses is what its cgroup does, and what is left of the top's is the guaranteed
// pods'.
func TestLevels(t *testing.T) {
	m := fake.New(t, "unified", false)
	for at, n := range map[string]string{"/kubepods": "100", "/kubepods/burstable": "30", "/kubepods/besteffort": "20"} {
		m.Group(at)
		m.Write("/sys/fs/cgroup"+at+"/cpu.stat", "usage_usec "+n+"\n")
		m.Write("/sys/fs/cgroup"+at+"/memory.current", n+"000\n")
		m.Write("/sys/fs/cgroup"+at+"/pids.current", n+"\n")
	}
	m.Run(7, "/kubepods/burstable/pod1/a", "pid:[2]")
	m.Run(8, "/kubepods/burstable/pod1/b/inner", "pid:[2]") // nothing in b itself
	m.Write("/sys/fs/cgroup/kubepods/burstable/pod1/b/cgroup.events", "populated 1\n")
	p, err := m.Prepare(context.Background(), m.Config("cgroup-root: /\ncgroups-per-qos: true"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Level{{"guaranteed", 0, 0, Use{50000, 50000, 50}}, {"burstable", 1, 2, Use{30000, 30000, 30}}, {"besteffort", 0, 0, Use{20000, 20000, 20}}} {
		if got := Measure(m.Machine, p).Levels[i]; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}
