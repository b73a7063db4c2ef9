package agree

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/node/machine/fake"
	"github.com/berth-runtime/berth/node/plan"
)

const wanted = `
system-reserved: {cpu: 500m, memory: 1Gi, pids: 1000}
kube-reserved: {cpu: 250m, memory: 512Mi}
eviction-hard: {memory.available: 5%, nodefs.available: 10%}
cgroup-root: /
cgroups-per-qos: true
system-reserved-enforce: cpu
kernel-parameters: off
oom-score-mode: off
berth-parent: off
`

// node is a machine with a kubelet that has files and options.
func node(t *testing.T, conf string, files map[string]string, options ...string) (*fake.Machine, *plan.Plan) {
	t.Helper()
	m := fake.New(t, "unified", true)
	for name, text := range files {
		m.Write(name, text)
	}
	m.Process(77, "kubelet", "/usr/bin/kubelet", "/kubernetes.slice/kubelet.service", "pid:[1]")
	m.Write("/proc/77/cmdline", strings.Join(append([]string{"/usr/bin/kubelet"}, options...), "\x00")+"\x00")
	p, err := m.Prepare(context.Background(), m.Config(conf))
	if err != nil {
		t.Fatal(err)
	}
	if p.Facts.Kubelet == nil {
		t.Skip("the executable of a kubelet is root's, and this test is not")
	}
	return m, p
}

// What is printed for a kubelet and for containerd is what the comparison agrees with.
func TestPrintedAgrees(t *testing.T) {
	for _, conf := range []string{wanted, strings.ReplaceAll(wanted, "cgroup-root: /", "cgroup-root: /fleet"), wanted + "pods-enforce: cpu\n", strings.ReplaceAll(wanted, "true", "false")} {
		_, p := node(t, conf, nil)
		text, err := YAML(p)
		if err != nil {
			t.Fatal(err)
		}
		m, p := node(t, conf, map[string]string{"/etc/k.yaml": string(text), "/etc/containerd/config.toml": "version = 3\nimports = ['conf.d/*.toml']\n",
			"/etc/containerd/conf.d/20-berth.toml": string(ContainerdTOML(p))}, "--config=/etc/k.yaml", "--v=2")
		r := Compare(m.Dir, p)
		for _, d := range r.Differences {
			if d.Who != "berth-node" { // which is not applied here
				t.Errorf("%s\n%s", d, text)
			}
		}
		if got := strings.Join(r.Compared, " "); got != "berth-node kubelet containerd" {
			t.Error(got)
		}
	}
}

// A drop-in adds to the thresholds that the kubelet has by default, so that one that names only
// memory leaves that of the disk in effect: seen on a kubelet 1.37, whose allocatable storage was a
// tenth less than the plan's.
func TestDropInKeepsDefaultEviction(t *testing.T) {
	conf := strings.Replace(wanted, ", nodefs.available: 10%", "", 1)
	_, p := node(t, conf, nil)
	printed, err := YAML(p)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		string(printed): "",
		strings.ReplaceAll(string(printed), "    nodefs.available: 0%\n", ""): "kubelet: evictionHard nodefs.available is 10%, berth-node counts nothing",
	} {
		m, p := node(t, conf, map[string]string{"/etc/k.yaml": "cgroupDriver: systemd\n", "/etc/k.d/20-berth.conf": text}, "--config=/etc/k.yaml", "--config-dir=/etc/k.d")
		found := ""
		for _, d := range Compare(m.Dir, p).Differences {
			if d.Who == "kubelet" {
				found += d.String()
			}
		}
		if !strings.HasPrefix(found, want) || want == "" && found != "" {
			t.Errorf("%q, not %q\n%s", found, want, text)
		}
	}
}

// Each difference has its one line, with what to change.
func TestDifferences(t *testing.T) {
	_, p := node(t, wanted, nil)
	good, err := YAML(p)
	if err != nil {
		t.Fatal(err)
	}
	with := func(old, new string) string {
		if !strings.Contains(string(good), old) {
			t.Fatalf("%q is not in\n%s", old, good)
		}
		return strings.Replace(string(good), old, new, 1)
	}
	const runc = "[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]\nruntime_type = \"io.containerd.runc.v2\"\n"
	for name, c := range map[string]struct {
		conf    string
		kubelet string
		files   map[string]string
		options []string
		want    string
	}{
		"driver":              {kubelet: with("cgroupDriver: systemd", "cgroupDriver: cgroupfs"), want: "kubelet: cgroupDriver is cgroupfs, berth-node uses systemd (/etc/k.yaml): set cgroupDriver: systemd"},
		"no driver":           {kubelet: with("cgroupDriver: systemd\n", ""), want: "kubelet: cgroupDriver is not set, and cgroupfs by default"},
		"option over file":    {kubelet: string(good), options: []string{"--cgroup-driver", "cgroupfs"}, want: "kubelet: cgroupDriver is cgroupfs"},
		"drop-in over file":   {kubelet: string(good), files: map[string]string{"/etc/k.d/5.conf": "cgroupRoot: /other\n"}, options: []string{"--config-dir=/etc/k.d"}, want: "kubelet: cgroupRoot is /other, berth-node's cgroup-root is /"},
		"levels":              {kubelet: with("cgroupsPerQOS: true", "cgroupsPerQOS: false"), want: "kubelet: cgroupsPerQOS is false, berth-node has true (/etc/k.yaml): set cgroups-per-qos: false in berth-node's configuration"},
		"memory":              {kubelet: with("memory: 1Gi", "memory: 2Gi"), want: `kubelet: systemReserved memory is 2Gi, berth-node counts 1Gi (/etc/k.yaml): set systemReserved: {memory: "1Gi"}`},
		"more than we count":  {kubelet: with("kubeReserved:\n", "kubeReserved:\n    pid: \"7\"\n"), want: "kubelet: kubeReserved pid is 7, berth-node counts nothing (/etc/k.yaml): set kube-reserved: {pid: 7} in berth-node's configuration"},
		"not a quantity":      {kubelet: with("memory: 1Gi", "memory: much"), want: `kubelet: systemReserved memory is "much"`},
		"eviction":            {kubelet: with("memory.available: 5%", "memory.available: 100Mi"), want: "kubelet: evictionHard memory.available is 100Mi, berth-node counts"},
		"both enforce":        {kubelet: with("- pods", "- pods\n    - system-reserved-compressible"), want: "both write the same limits"},
		"cgroup of the other": {kubelet: strings.Replace(with("- pods", "- kube-reserved"), "kubeReservedCgroup: /kubernetes.slice", "kubeReservedCgroup: /kube", 1), want: `kubelet: kubeReservedCgroup is "/kube", berth-node has "/kubernetes.slice" (/etc/k.yaml): set kubeReservedCgroup: /kubernetes.slice`},
		"pods by both":        {conf: wanted + "pods-enforce: true\n", kubelet: string(good), want: "kubelet: enforceNodeAllocatable has pods, and berth-node has pods-enforce: true"},
		"broken":              {kubelet: "a: [", want: "kubelet: read the configuration of the kubelet (/etc/k.yaml)"},
		"runc": {kubelet: string(good), files: map[string]string{"/etc/containerd/config.toml": runc},
			want: "containerd: SystemdCgroup of the runtime runc is not set, and false by default, berth-node uses systemd: set SystemdCgroup = true in its options"},
		"options of the shim": {kubelet: string(good), files: map[string]string{"/etc/containerd/config.toml": "[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes]\nberth = {runtime_type = 'io.containerd.berth.v2', options = {ConfigPath = '/etc/shim.toml'}}\n",
			"/etc/shim.toml": "SystemdCgroup = false\n"}, want: "containerd: SystemdCgroup of the runtime berth is false"},
		"docker's place":  {kubelet: string(good), files: map[string]string{"/etc/docker/daemon.json": `{"exec-opts": ["native.cgroupdriver=systemd"]}`}, want: `docker: cgroup-parent is not set in /etc/docker/daemon.json, the workloads are in kubepods.slice: set "cgroup-parent": "kubepods.slice" and restart Docker`},
		"docker's driver": {kubelet: string(good), files: map[string]string{"/etc/docker/daemon.json": `{"cgroup-parent": "kubepods.slice", "exec-opts": ["native.cgroupdriver=cgroupfs"]}`}, want: "docker: the cgroup driver is cgroupfs"},
		"berth's place":   {conf: strings.Replace(wanted, "berth-parent: off", "berth-parent: check", 1), kubelet: string(good), files: map[string]string{"/etc/berth/berth.toml": "cgroup-parent = \"/x\"\n"}, want: `berth: cgroup-parent is "/x" in /etc/berth/berth.toml, the workloads are in /kubepods: set cgroup-parent = "/kubepods"`},
		"berth's driver":  {kubelet: string(good), files: map[string]string{"/etc/berth/berth.toml": "cgroup-driver = \"cgroupfs\"\ncgroup-parent = \"/kubepods\"\n"}, want: `berth: cgroup-driver is "cgroupfs" in /etc/berth/berth.toml, berth-node uses systemd`},
	} {
		files := map[string]string{"/etc/k.yaml": c.kubelet}
		for file, text := range c.files {
			files[file] = text
		}
		if c.conf == "" {
			c.conf = wanted
		}
		m, p := node(t, c.conf, files, append([]string{"--config", "/etc/k.yaml"}, c.options...)...)
		var lines []string
		for _, d := range Compare(m.Dir, p).Differences {
			if d.Who != "berth-node" {
				lines = append(lines, d.String())
			}
		}
		if len(lines) != 1 || !strings.HasPrefix(lines[0], c.want) && !strings.Contains(lines[0], c.want) || strings.Contains(lines[0], "\n") {
			t.Errorf("%s: %q, want one line with %q", name, lines, c.want)
		}
	}
}

// What is not applied is a difference, too; without a kubelet kubeadm's file is looked at, and
// without one nothing.
func TestWithoutKubelet(t *testing.T) {
	m := fake.New(t, "unified", true)
	compare := func() *Report {
		p, err := m.Prepare(context.Background(), m.Config(wanted))
		if err != nil {
			t.Fatal(err)
		}
		return Compare(m.Dir, p)
	}
	r := compare()
	if got := r.Text(func(s string) string { return s }); !strings.HasPrefix(got, "compared: berth-node\nberth-node: 1 of 1 settings is not in effect: run berth-node apply\n") {
		t.Error(got)
	}
	m.Write("/var/lib/kubelet/config.yaml", `{"cgroupDriver": "systemd", "systemReserved": {"cpu": "0.5", "memory": "1024Mi", "pid": "1k"}, "kubeReserved": {"cpu": "250m", "memory": "512Mi"}, "evictionHard": {"memory.available": "5%", "nodefs.available": "10%"}}`)
	if r := compare(); len(r.Differences) != 1 || strings.Join(r.Compared, " ") != "berth-node kubelet" {
		t.Errorf("%q", r)
	}
}

func TestOwner(t *testing.T) {
	for enforce, want := range map[string]string{"false": "kubepods.slice belongs to the kubelet", "cpu": "the weight of kubepods.slice belongs to berth-node", "true": "kubepods.slice belongs to berth-node"} {
		_, p := node(t, wanted+"pods-enforce: "+enforce+"\n", nil)
		if got := Owner(p); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", enforce, got)
		}
		text, err := YAML(p)
		if word := map[bool]string{true: "- pods\n", false: "- none\n"}[enforce == "false"]; err != nil || !strings.Contains(string(text), word) || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v\n%s", enforce, err, text)
		}
	}
}

// containerd's own default is read as containerd means it.
func TestContainerdsDefault(t *testing.T) {
	out, err := exec.Command("containerd", "config", "default").Output()
	if err != nil {
		t.Skipf("needs containerd: %v", err)
	}
	m := fake.New(t, "unified", true)
	m.Write(containerdFile, string(out))
	list, err := Containerd(m.Dir)
	if err != nil || len(list) == 0 {
		t.Fatalf("%v %v", list, err)
	}
	for _, r := range list {
		if r.Name == "runc" {
			if fmt.Sprint(strings.Contains(string(out), "SystemdCgroup = true")) != fmt.Sprint(*r.Systemd) || r.Type != "io.containerd.runc.v2" {
				t.Errorf("%+v", r)
			}
			return
		}
	}
	t.Errorf("%v", list)
}
