package machine_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/config/resource"
	"github.com/berth-runtime/berth/node/machine"
	"github.com/berth-runtime/berth/node/machine/fake"
	"github.com/berth-runtime/berth/node/machine/usage"
)

func TestCapacity(t *testing.T) {
	m := fake.New(t, "unified", false)
	m.Write("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "16\n")
	m.Write("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0\n")
	m.Write("/sys/devices/system/cpu/online", "0-2,7\n")
	got, err := m.Capacity()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[resource.Name]int64{resource.CPU: 4000, resource.Memory: 8 << 30, resource.PIDs: 32768, "hugepages-2Mi": 32 << 20} {
		if got[name] != want {
			t.Errorf("%s is %d, want %d", name, got[name], want)
		}
	}
	if _, ok := got["hugepages-1Gi"]; ok {
		t.Error("huge pages of which there are none")
	}
	m.Write("/proc/meminfo", "MemFree: 3 kB\n")
	if _, err := m.Capacity(); err == nil {
		t.Error("a memory without size")
	}
}

func TestInit(t *testing.T) {
	if got := fake.New(t, "unified", false).Init(); got != config.Cgroupfs {
		t.Error(got)
	}
	if got := fake.New(t, "unified", true).Init(); got != config.Systemd {
		t.Error(got)
	}
}

// A daemon is known by its executable, not by what it calls itself.
func TestDaemons(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the executables of the host's daemons are root's, and this test is not")
	}
	m := fake.New(t, "unified", true)
	m.Process(10, "containerd", "/usr/bin/containerd", "/system.slice/containerd.service", "pid:[1]")
	m.Process(11, "containerd", "/tmp/evil", "/user.slice", "pid:[1]")                                // calls itself so
	m.Process(12, "containerd", "/opt/containerd", "/system.slice/docker-1.scope", "pid:[2]")         // a container's own
	m.Process(13, "containerd-shim", "/usr/bin/containerd-shim-berth-v2", "/system.slice", "pid:[1]") // another
	m.Process(14, "containerd", "/home/me/containerd", "/user.slice", "pid:[1]")                      // any user could have put it there
	if err := os.Chmod(m.Dir+"/home/me/containerd", 0o777); err != nil {
		t.Fatal(err)
	}
	// A container's that shares the host's pids, and has the names that count in its own root.
	m.Process(8, "kubelet", "/usr/bin/kubelet", "/kubepods.slice/pod1", "pid:[1]")
	m.Root(8, "/run/containers/1")
	m.Process(9, "containerd", "/usr/bin/containerd", "/kubepods.slice/pod1", "pid:[1]")
	m.Root(9, "/run/containers/1")
	m.Process(15, "kubelet", "/usr/bin/kubelet", "/kubernetes.slice/kubelet.service", "pid:[1]")
	m.Process(16, "my-runtime", "/opt/my-runtime", "/system.slice/my.service", "pid:[1]")
	m.Systemd.Service("my.service", 16)
	p, err := m.Prepare(context.Background(), m.Config("oom-scores: {containerd: -999, my.service: -900, nosuch.service: -1}\noom-score-mode: set"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, d := range p.Facts.Daemons {
		got[d.Key] += d.PID
	}
	if len(got) != 2 || got["containerd"] != 10 || got["my.service"] != 16 {
		t.Errorf("%v", got)
	}
	if k := p.Facts.Kubelet; k == nil || k.PID != 15 || k.Cgroup != "/kubernetes.slice/kubelet.service" || k.Unit != "kubelet.service" {
		t.Errorf("%+v", k)
	}
	// A path that is another file for us than for the process is not the one meant.
	p, err = m.Prepare(context.Background(), m.Config("oom-scores: {"+m.Dir+"/home/me/containerd: -5}"))
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Facts.Daemons; len(d) > 0 {
		t.Errorf("%v", d)
	}
}

// Containers are found whatever made them, and a daemon's own helper is none.
func TestContainers(t *testing.T) {
	m := fake.New(t, "unified", true)
	for pid, c := range map[int]struct{ group, namespace string }{
		20: {"/system.slice/docker-1.scope", "pid:[7]"},
		21: {"/system.slice/ssh.service", "pid:[1]"},
		22: {"/machine.slice/libpod-2.scope", "pid:[8]"},
		23: {"/machine.slice/libpod-conmon-2.scope", "pid:[1]"},
		24: {"/system.slice/vm.service/payload", "pid:[9]"},
	} {
		m.Run(pid, c.group, c.namespace)
	}
	p, err := m.Prepare(context.Background(), m.Config(""))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range p.Facts.Containers {
		got = append(got, c.Name()+" "+c.Cgroup)
	}
	want := "docker/1 /system.slice/docker-1.scope"
	if len(got) != 3 || got[0] != "podman/2 /machine.slice/libpod-2.scope" || got[1] != want || got[2] != "unknown/payload /system.slice/vm.service/payload" {
		t.Errorf("%q", got)
	}
	if n := len(p.Outside()); n != 2 || len(p.Warnings) < 2 {
		t.Errorf("%d are outside: %q", n, p.Warnings)
	}
}

// Asking for a plan changes nothing.
func TestPlanReadsOnly(t *testing.T) {
	for _, mode := range []string{"unified", "legacy"} {
		for _, systemd := range []bool{true, false} {
			m := fake.New(t, mode, systemd)
			m.Process(700, "kubelet", "/usr/bin/kubelet", "/", "pid:[1]")
			before := m.Snapshot()
			p, err := m.Prepare(context.Background(), m.Config("kube-reserved: {cpu: 1, memory: 1Gi}\nkube-container: /kube\nkube-reserved-enforce: true\npods-enforce: true\nkernel-parameters: set\noom-score-mode: set"))
			if err != nil || len(p.Changes()) < 5 {
				t.Fatalf("%v, %d changes", err, len(p.Changes()))
			}
			usage.Measure(m.Machine, p)
			if after := m.Snapshot(); after != before {
				t.Errorf("%s, systemd %v: before:\n%s\nafter:\n%s", mode, systemd, before, after)
			}
			if m.Systemd != nil && len(m.Systemd.Calls) > 0 {
				t.Errorf("%s: %v", mode, m.Systemd.Calls)
			}
		}
	}
}

func TestNoCgroups(t *testing.T) {
	m := fake.New(t, "unified", false)
	m.Write("/proc/self/mountinfo", "")
	if _, err := machine.OpenIn(m.Dir, nil); !errors.Is(err, cgroup.ErrNotMounted) {
		t.Errorf("%v", err)
	}
}
