package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/config/resource"
	"github.com/berth-runtime/berth/node/inventory"
)

const gi = 1 << 30

// facts are those of a machine with 4 processors and 8 GiB.
func facts(init config.Driver, mode string) *Facts {
	version := 0
	if init == config.Systemd {
		version = 257
	}
	layout, _ := ledger.Named(mode, version)
	f := &Facts{
		Capacity: resource.List{resource.CPU: 4000, resource.Memory: 8 * gi, resource.PIDs: 32768, resource.EphemeralStorage: 100 * gi},
		PageSize: 4096, Init: init, SystemdVersion: version, Mode: mode, Layout: layout, Groups: map[string]Group{},
		Parameters: map[string]string{"vm.overcommit_memory": "1", "vm.panic_on_oom": "0", "kernel.panic": "10", "kernel.panic_on_oops": "1"},
	}
	if init == config.Systemd {
		f.Groups["/system.slice"] = Group{Active: true, Files: map[string]string{}, Properties: map[string]any{}}
	}
	return f
}

func makePlan(t *testing.T, text string, f *Facts) *Plan {
	t.Helper()
	p, err := tryPlan(t, text, f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func tryPlan(t *testing.T, text string, f *Facts) (*Plan, error) {
	t.Helper()
	if !strings.Contains(text, "berth-parent") {
		text += "\nberth-parent: off" // of which TestBerthParent is
	}
	c, err := config.Parse("node.yaml", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	driver, err := DriverFor(c, f.Init)
	if err != nil {
		return nil, err
	}
	if c, err = c.For(driver); err != nil {
		return nil, err
	}
	return Make(c, f)
}

// steps prints what would be done, without what holds.
func steps(p *Plan) string {
	var list []string
	for _, s := range p.Changes() {
		text := string(s.Kind) + " " + s.Target
		if s.Name != "" {
			text += " " + s.Name
		}
		list = append(list, text+"="+s.Value)
	}
	return strings.Join(list, "\n")
}

const reserved = `
system-reserved: {cpu: 500m, memory: 1Gi, pids: 1000}
kube-reserved: {cpu: 250m, memory: 512Mi}
eviction-hard: {memory.available: 100Mi}
`

func TestSteps(t *testing.T) {
	for _, c := range []struct {
		name, text string
		init       config.Driver
		mode       string
		want       string
	}{
		{"nothing is enforced by default", reserved, config.Systemd, "unified", ""},
		{"systemd on v2", reserved + "system-reserved-enforce: true\nkube-reserved-enforce: cpu\npods-enforce: true\nreserved-protect: true", config.Systemd, "unified", `
property system.slice CPUWeight=50
property system.slice MemoryMax=1073741824
property system.slice MemoryMin=1073741824
property system.slice TasksMax=1000
slice kubernetes.slice=active
property kubernetes.slice CPUWeight=25
slice machine.slice=active
property machine.slice CPUWeight=325
property machine.slice MemoryMax=6979321856
property machine.slice TasksMax=31768`},
		{"systemd on v1 has the properties of v2", reserved + "system-reserved-enforce: true\npods-enforce: cpu", config.Systemd, "legacy", `
property system.slice CPUWeight=50
property system.slice MemoryMax=1073741824
property system.slice TasksMax=1000
slice machine.slice=active
property machine.slice CPUWeight=325`},
		{"the tree of today's kubelet", "cgroup-root: /\ncgroups-per-qos: true\nsystem-reserved: {memory: 1Gi}\npods-enforce: true", config.Systemd, "unified", `
slice kubepods.slice=active
property kubepods.slice CPUWeight=400
property kubepods.slice MemoryMax=7516192768
property kubepods.slice TasksMax=32768`},
		{"a nested root is a nested slice", "cgroup-root: /foo/bar-baz\npods-enforce: cpu", config.Systemd, "unified", `
slice foo-bar\x2dbaz.slice=active
property foo-bar\x2dbaz.slice CPUWeight=400`},
		{"cgroupfs on v2", reserved + "kube-container: /kube\nkube-reserved-enforce: true\npods-enforce: cpu\nkernel-parameters: off", config.Cgroupfs, "unified", `
cgroup /kube=there
file /kube cpu.weight=25
file /kube memory.max=536870912
cgroup /machine=there
file /machine cpu.weight=325`},
		{"cgroupfs on v1", reserved + "kube-container: /kube\nkube-reserved-enforce: true", config.Cgroupfs, "legacy", `
cgroup /kube=there
file /kube cpu.shares=256
file /kube memory.limit_in_bytes=536870912`},
	} {
		p := makePlan(t, c.text, facts(c.init, c.mode))
		if got := steps(p); got != strings.TrimPrefix(c.want, "\n") {
			t.Errorf("%s:\n%s\nwant%s", c.name, got, c.want)
		}
		if len(p.Problems) > 0 {
			t.Errorf("%s: %v", c.name, p.Problems)
		}
		for _, s := range p.Steps {
			if s.Cause == "" || !strings.Contains(s.Cause, "node.yaml") && !strings.Contains(s.Cause, "default of") {
				t.Errorf("%s: %s is because of %q", c.name, s.ID(), s.Cause)
			}
		}
	}
}

// Weights are as the reservations, however many processors there are.
func TestWeights(t *testing.T) {
	for _, c := range []struct {
		cpus           int64
		mode           string
		system, others string
	}{
		{2, "unified", "50", "150"},
		{100, "unified", "50", "9950"},
		{200, "unified", "25", "9975"},
		{1000, "unified", "5", "9995"},
		{2, "legacy", "512", "1536"},
		{256, "legacy", "512", "261632"},
		{512, "legacy", "256", "261888"},
	} {
		f := facts(config.Cgroupfs, c.mode)
		f.Capacity[resource.CPU] = 1000 * c.cpus
		p := makePlan(t, "kube-reserved: {cpu: 500m}\nkube-container: /kube\nkube-reserved-enforce: cpu\npods-enforce: cpu\nkernel-parameters: off", f)
		got := map[string]string{}
		for _, s := range p.Steps {
			if s.Kind == SetFile {
				got[s.Target] = s.Value
			}
		}
		if got["/kube"] != c.system || got["/machine"] != c.others {
			t.Errorf("%d processors, %s: %v, want %s and %s", c.cpus, c.mode, got, c.system, c.others)
		}
	}
}

func TestHugePages(t *testing.T) {
	text := "kube-reserved: {hugepages-2Mi: 4Mi}\nkube-container: /kube\nkube-reserved-enforce: true\npods-enforce: true"
	f := facts(config.Cgroupfs, "unified")
	f.Capacity["hugepages-2Mi"] = 64 << 20
	got := steps(makePlan(t, text, f))
	for _, want := range []string{"file /kube hugetlb.2MB.max=4194304", "file /machine hugetlb.2MB.max=62914560", "file /machine memory.max=8522825728"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	f = facts(config.Systemd, "unified")
	f.Capacity["hugepages-2Mi"] = 64 << 20
	p := makePlan(t, strings.Replace(text, "/kube\n", "/kubernetes\n", 1), f)
	if strings.Contains(steps(p), "hugetlb") || !strings.Contains(strings.Join(p.Warnings, "\n"), "systemd has no property for it") {
		t.Errorf("%s\n%v", steps(p), p.Warnings)
	}
}

// What holds is not done again; what holds in systemd's mind only is.
func TestDone(t *testing.T) {
	f := facts(config.Systemd, "unified")
	f.Groups["/system.slice"] = Group{Active: true,
		Files:      map[string]string{"cpu.weight": "50", "memory.max": "999"},
		Properties: map[string]any{"CPUWeight": uint64(50), "MemoryMax": uint64(1 << 30)}}
	p := makePlan(t, "system-reserved: {cpu: 500m, memory: 1Gi}\nsystem-reserved-enforce: true", f)
	if got := steps(p); got != "property system.slice MemoryMax=1073741824" {
		t.Error(got)
	}
}

func TestProblems(t *testing.T) {
	none := facts(config.Systemd, "unified")
	delete(none.Groups, "/system.slice")
	lacking := facts(config.Systemd, "unified")
	lacking.Groups["/system.slice"] = Group{Active: true, Missing: []string{"cpu", "hugetlb"}}
	for _, c := range []struct {
		f    *Facts
		text string
		want string
	}{
		{none, "", "default of system-container: there is no cgroup /system.slice"},
		{facts(config.Systemd, "unified"), "system-container: /daemons", "node.yaml:1: system-container: there is no cgroup /daemons.slice"},
		{lacking, "", "/system.slice lacks the cpu controller, without which system-reserved is neither counted nor enforced: systemctl set-property"},
	} {
		p := makePlan(t, c.text, c.f)
		if len(p.Problems) != 1 || !strings.Contains(p.Problems[0].Error(), c.want) {
			t.Errorf("%v, want something of %q", p.Problems, c.want)
		}
	}
}

func TestDrivers(t *testing.T) {
	if _, err := tryPlan(t, "cgroup-driver: cgroupfs", facts(config.Systemd, "unified")); !errors.Is(err, ErrWrongDriver) || !strings.HasPrefix(err.Error(), "node.yaml:1: cgroup-driver: ") {
		t.Errorf("%v", err)
	}
	if _, err := tryPlan(t, "cgroup-driver: systemd", facts(config.Cgroupfs, "unified")); err == nil {
		t.Error("systemd where it is not")
	}
	if _, err := tryPlan(t, "resource-container: /kubelet", facts(config.Systemd, "unified")); !errors.Is(err, config.ErrResourceContainer) {
		t.Errorf("%v", err)
	}
}

func TestMoves(t *testing.T) {
	f := facts(config.Cgroupfs, "unified")
	f.Loose = 3
	f.Kubelet = &Daemon{PID: 9, Name: "kubelet", Cgroup: "/"}
	p := makePlan(t, "system-container: /system\nresource-container: /kubelet\nkernel-parameters: off", f)
	want := "cgroup /system=there\ncgroup /kubelet=there\nmove /kubelet kubelet (pid 9)=/kubelet\nmove /system processes of the root=/system"
	if got := steps(p); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	// The kubelet goes first, since it is one of those in the root.
	f = facts(config.Systemd, "unified")
	f.Loose = 3
	f.Kubelet = &Daemon{PID: 9, Name: "kubelet", Cgroup: "/"}
	if got := steps(makePlan(t, "", f)); strings.Contains(got, "move") {
		t.Errorf("under systemd: %s", got)
	}
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		name, text string
		change     func(*Facts)
		want       string
	}{
		{"kubelet among the system's daemons", "", func(f *Facts) {
			f.Kubelet = &Daemon{PID: 9, Cgroup: "/system.slice/kubelet.service", Unit: "kubelet.service"}
		}, "the kubelet (pid 9) is in kubelet.service, inside the system container /system.slice"},
		{"kubelet from a terminal", "", func(f *Facts) {
			f.Kubelet = &Daemon{PID: 9, Cgroup: "/user.slice/user-1000.slice/session-1.scope", Unit: "session-1.scope"}
		}, "the kubelet (pid 9) was started from a terminal: it is in session-1.scope"},
		{"containers among the daemons", "", func(f *Facts) {
			for _, at := range []string{"/machine.slice/docker-1.scope", "/system.slice/docker-2.scope", "/system.slice/docker-3.scope", "/system.slice/docker-4.scope"} {
				f.Containers = append(f.Containers, inventory.Container{ID: "x", Maker: inventory.Docker, Cgroup: at})
			}
		}, `/system.slice/docker-2.scope, /system.slice/docker-3.scope and 1 more of docker are outside of the workloads, and counted as system-reserved: set "cgroup-parent": "machine.slice" in /etc/docker/daemon.json`},
		{"eviction without a kubelet", "eviction-hard: {memory.available: 100Mi}", func(*Facts) {}, "node.yaml:1: eviction-hard: nothing evicts here, since there is no kubelet; it is only subtracted from what is allocatable: set eviction: kill"},
		{"eviction beside a kubelet", "eviction-hard: {memory.available: 100Mi}\neviction: kill", func(f *Facts) { f.KubeletConfigured = true }, "node.yaml:2: eviction: there is a kubelet here, which evicts"},
		{"eviction of files", "eviction-hard: {nodefs.available: 1%}\neviction: kill", func(*Facts) {}, "nothing evicts for nodefs.available"},
		{"eviction of nothing", "eviction: kill", func(*Facts) {}, "there is no threshold to act on"},
		{"parameters are checked", "", func(f *Facts) { f.Parameters["kernel.panic"] = "0" }, "kernel.panic is 0, but 10 is right"},
		{"a root that is deep", "cgroup-root: /a/b/c", func(*Facts) {}, "node.yaml:1: cgroup-root: /a/b/c is 3 levels below the root"},
		{"a runtime that no reservation has", "oom-score-mode: off", func(f *Facts) {
			f.Daemons = []Daemon{{Key: "containerd", PID: 9, Name: "containerd", Cgroup: "/machine.slice/containerd.service"},
				{Key: "dockerd", PID: 10, Name: "dockerd", Cgroup: "/system.slice/docker.service"}}
		}, "containerd (pid 9) is in /machine.slice/containerd.service, so no reservation covers its usage: set Slice="},
		{"scores are checked", "oom-scores: {kubelet: -999}", func(f *Facts) { f.Daemons = []Daemon{{Key: "kubelet", PID: 9, Name: "kubelet"}} },
			"kubelet (pid 9) has OOM score 0 where node.yaml:1: oom-scores.kubelet wants -999"},
		{"less than is used", "system-reserved: {memory: 1Gi}\nsystem-reserved-enforce: true", func(f *Facts) { f.Groups["/system.slice"] = Group{Active: true, Memory: 2 * gi} },
			"uses 2.0Gi of memory now, and the limit is to be 1.0Gi"},
	} {
		f := facts(config.Systemd, "unified")
		c.change(f)
		p := makePlan(t, c.text, f)
		if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], c.want) {
			t.Errorf("%s: %q, want one with %q", c.name, p.Warnings, c.want)
		}
	}
	f := facts(config.Systemd, "unified")
	f.Kubelet = &Daemon{PID: 9, Cgroup: "/kubernetes.slice/kubelet.service", Unit: "kubelet.service"}
	if p := makePlan(t, reserved, f); len(p.Warnings) > 0 {
		t.Errorf("a kubelet where it should be: %q", p.Warnings)
	}
	// Without systemd it was moved into the system container by the plan itself.
	f = facts(config.Cgroupfs, "unified")
	f.Kubelet = &Daemon{PID: 9, Cgroup: "/system"}
	if p := makePlan(t, "system-container: /system\nsystem-reserved: {memory: 1Gi}", f); len(p.Warnings) > 0 {
		t.Errorf("a kubelet where the plan puts it: %q", p.Warnings)
	}
}

func TestParametersAndScores(t *testing.T) {
	f := facts(config.Systemd, "unified")
	f.Parameters["vm.panic_on_oom"] = "1"
	f.Daemons = []Daemon{{Key: "kubelet", PID: 9, Name: "kubelet"}, {Key: "kubelet", PID: 10, Name: "kubelet", Score: -999}}
	got := steps(makePlan(t, "kernel-parameters: set\noom-scores: {kubelet: -999}\noom-score-mode: set", f))
	if got != "parameter vm.panic_on_oom=0\noom-score kubelet pid 9=-999" {
		t.Error(got)
	}
	if got := steps(makePlan(t, "kernel-parameters: off\noom-score-mode: off", f)); got != "" {
		t.Error(got)
	}
}

func TestQoSLevels(t *testing.T) {
	for init, want := range map[config.Driver]string{
		config.Systemd:  "/kubepods.slice/kubepods-burstable.slice /kubepods.slice/kubepods-besteffort.slice",
		config.Cgroupfs: "/kubepods/burstable /kubepods/besteffort",
	} {
		var paths []string
		for _, l := range makePlan(t, "cgroup-root: /\ncgroups-per-qos: true", facts(init, "unified")).Levels() {
			paths = append(paths, l.Path)
		}
		if got := strings.Join(paths, " "); got != want {
			t.Errorf("%s: %s", init, got)
		}
	}
}

// Containers that name no place of their own are let below the workloads.
func TestBerthParent(t *testing.T) {
	for _, c := range []struct {
		text, now, want, warning string
	}{
		{"berth-parent: set", "", "parent /etc/berth/berth.toml cgroup-parent=/machine", ""},
		{"berth-parent: set\ncgroup-root: /fleet", "/machine", "parent /etc/berth/berth.toml cgroup-parent=/fleet", ""},
		{"berth-parent: set", "/machine", "", ""},
		{"berth-parent: set\ncgroup-root: /\ncgroups-per-qos: true", "", "parent /etc/berth/berth.toml cgroup-parent=/kubepods", ""},
		{"berth-parent: set\ncgroup-root: /", "", "", ""},
		{"berth-parent: check", "/other", "", `has cgroup-parent = "/other" where default of cgroup-root wants "/machine"`},
		{"berth-parent: off", "/other", "", ""},
	} {
		f := facts(config.Systemd, "unified")
		f.Settings.Parent = c.now
		p := makePlan(t, c.text, f)
		if got := steps(p); got != c.want {
			t.Errorf("%q with %q: %q, want %q", c.text, c.now, got, c.want)
		}
		if got := strings.Join(p.Warnings, "\n"); c.warning != "" && !strings.Contains(got, c.warning) || c.warning == "" && strings.Contains(got, "berth.toml") {
			t.Errorf("%q with %q: warnings %s", c.text, c.now, got)
		}
	}
	f := facts(config.Systemd, "unified")
	f.Settings.Driver = "cgroupfs"
	if got := strings.Join(makePlan(t, "berth-parent: set", f).Warnings, "\n"); !strings.Contains(got, "made behind its back") {
		t.Errorf("a driver against systemd: %s", got)
	}
}
