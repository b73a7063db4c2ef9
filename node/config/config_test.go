package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-runtime/berth/node/config/resource"
)

const full = `# a node
cgroup-driver: systemd
cgroup-root: /
cgroups-per-qos: true
system-reserved:
  cpu: 500m
  memory: 1Gi
  hugepages-2048Ki: 4Mi
kube-reserved: {cpu: 250m, memory: 5%}
eviction-hard:
  memory.available: 100Mi
  nodefs.available: 10%
system-reserved-enforce: cpu
kube-reserved-enforce: true
pods-enforce: true
properties: persistent
kernel-parameters: set
oom-scores:
  kubelet.service: -999
recheck-interval: 90s
listen: "off"
`

func TestParse(t *testing.T) {
	c, err := Parse("node.yaml", full, []Override{{"system-reserved", "cpu=1"}, {"eviction-hard", "memory.available<1Gi"}})
	if err != nil {
		t.Fatal(err)
	}
	if c.Driver != Systemd || !c.CgroupsPerQoS || c.Workloads() != "/kubepods" || c.SystemEnforce != CPUOnly || c.KubeEnforce != All ||
		c.PodsEnforce != All || c.Properties != Persistent || c.Parameters != Set || c.Recheck != 90*time.Second || c.Listen != "off" {
		t.Errorf("%+v", c)
	}
	// A flag replaces the whole of a mapping.
	if len(c.SystemReserved) != 1 || c.SystemReserved[resource.CPU].String() != "1" || c.SystemReserved[resource.CPU].Cause != "--system-reserved cpu" {
		t.Errorf("%v", c.SystemReserved)
	}
	if a := c.EvictionHard[resource.Memory]; len(c.EvictionHard) != 1 || a.String() != "1Gi" {
		t.Errorf("%v", c.EvictionHard)
	}
	if a := c.KubeReserved[resource.Memory]; a.String() != "5%" || a.Cause != "node.yaml:9: kube-reserved.memory" {
		t.Errorf("%+v", a)
	}
	if s := c.Scores["kubelet.service"]; len(c.Scores) != 1 || s.Value != -999 || s.Cause != "node.yaml:19: oom-scores.kubelet.service" {
		t.Errorf("%+v", c.Scores)
	}
	if got := c.Cause("pods-enforce"); got != "node.yaml:15: pods-enforce" {
		t.Error(got)
	}
	if got := c.Cause("system-reserved"); got != "--system-reserved" {
		t.Error(got)
	}
	if got := c.Cause("state-dir"); got != "default of state-dir" {
		t.Error(got)
	}
}

func TestDefaults(t *testing.T) {
	c, err := Parse("node.yaml", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Driver != Auto || c.Workloads() != "/machine" || c.SystemEnforce != Nothing || c.Parameters != Check || len(c.Scores) != 5 || c.StateDir != "/var/lib/berth-node" {
		t.Errorf("%+v", c)
	}
	for name, want := range map[string]int{"kubelet": -999, "containerd": -999, "dockerd": -900} {
		if got := c.Scores[name].Value; got != want {
			t.Errorf("the OOM score of %s is %d, want %d", name, got, want)
		}
	}
	systemd, err := c.For(Systemd)
	if err != nil || systemd.SystemContainer != "/system" || systemd.KubeContainer != "" {
		t.Errorf("%+v, %v", systemd, err)
	}
	plain, err := c.For(Cgroupfs)
	if err != nil || plain.SystemContainer != "" {
		t.Errorf("%+v, %v", plain, err)
	}
}

// refused are files that are, and what is said of them.
var refused = map[string]string{
	"a: 1":                               "node.yaml:1: there is no key a",
	"\nkube-reservd: {}":                 "node.yaml:2: there is no key kube-reservd: is it kube-reserved?",
	"cgroup-driver: cgroupsfs":           "node.yaml:1: cgroup-driver: \"cgroupsfs\" is none of auto, systemd, cgroupfs",
	"system-reserved:\n  cpu: 1x":        "node.yaml:2: system-reserved.cpu: \"1x\" is not a quantity",
	"system-reserved:\n  gpu: 1":         "node.yaml:2: system-reserved.gpu: there is no resource",
	"system-reserved: 1Gi":               "node.yaml:1: system-reserved: \"1Gi\" is not a mapping: write system-reserved: {cpu: 500m, memory: 1Gi}",
	"system-reserved: {cpu: {a: 1}}":     "takes one value",
	"cgroup-root: {a: 1}":                "takes one value",
	"cgroup-root: machine.slice":         "would be encoded twice: write /machine",
	"cgroup-root: /a-b\\x2dc.slice":      "would be encoded twice: write /a/b-c",
	"cgroup-root: /a--b.slice":           "would be encoded twice: write a path, as /foo/bar",
	"cgroup-root: /foo\\x2dbar":          "encoded twice",
	"cgroup-root: foo":                   "not an absolute path",
	"cgroup-root: /foo/../bar":           "shortest form, which is /bar",
	"cgroup-root: ''":                    "it is empty",
	"cgroup-root: /\npods-enforce: true": "node.yaml:1: cgroup-root: with pods-enforce",
	"system-container: /":                "node.yaml:1: system-container: the root",
	"eviction-hard: {memory.free: 1}":    "no eviction signal",
	"eviction-hard: {memory.available: 1, memory.available: 2}":    "given twice",
	"system-reserved: {hugepages-2Mi: 2Mi, hugepages-2048Ki: 2Mi}": "given twice",
	"cgroups-per-qos: yes":          "neither true nor false",
	"recheck-interval: 10":          "not a time",
	"recheck-interval: 1ms":         "not between",
	"reclaim-pressure: 10":          "not a share",
	"oom-scores: {kubelet: -1001}":  "from -1000 to 1000",
	"oom-scores: {bin/kubelet: -1}": "absolute path",
	"listen: localhost":             "not an address",
	"state-dir: x":                  "not an absolute path",
	"a: [1]":                        "node.yaml: line 1: a list",
}

func TestRefused(t *testing.T) {
	for text, want := range refused {
		if _, err := Parse("node.yaml", text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want something of %q", text, err, want)
		}
	}
	for _, o := range []Override{{"kube-reserved", "cpu"}, {"kube-reserved", "cpu=1,cpu=2"}, {"no-such", "1"}, {"cgroup-driver", ""}} {
		if _, err := Parse("node.yaml", "", []Override{o}); err == nil || !strings.Contains(err.Error(), "--"+o.Key) {
			t.Errorf("%v: %v", o, err)
		}
	}
}

func TestForDriver(t *testing.T) {
	for _, c := range []struct {
		text   string
		driver Driver
		want   string
	}{
		{"resource-container: /kubelet", Systemd, "node.yaml:1: resource-container: not under systemd"},
		{"resource-container: /kubelet", Cgroupfs, ""},
		{"system-reserved-enforce: true", Systemd, "nothing to enforce: set system-reserved"},
		{"system-reserved-enforce: true\nsystem-reserved: {cpu: 1}", Systemd, ""},
		{"system-reserved-enforce: true\nsystem-reserved: {cpu: 1}", Cgroupfs, "set system-container"},
		{"kube-reserved-enforce: true\nkube-reserved: {cpu: 1}", Systemd, ""},
		{"kube-reserved-enforce: true\nkube-reserved: {cpu: 1}", Cgroupfs, "set kube-container"},
		{"system-container: /a/b\ncgroup-root: /a", Cgroupfs, "overlaps"},
		{"system-container: /a\nkube-container: /a", Cgroupfs, "overlaps"},
		{"system-container: /a\nkube-container: /ab", Cgroupfs, ""},
		{"cgroup-root: /system", Systemd, "overlaps"},
		{"cgroup-root: /", Systemd, ""},
	} {
		conf, err := Parse("node.yaml", c.text, nil)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		_, err = conf.For(c.driver)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q for %s: %v, want %q", c.text, c.driver, err, c.want)
		}
	}
	conf, _ := Parse("node.yaml", "resource-container: /kubelet", nil)
	if _, err := conf.For(Systemd); !errors.Is(err, ErrResourceContainer) {
		t.Error(err)
	}
}

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.yaml")
	if _, err := Load(file, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a named file that is missing: %v", err)
	}
	if err := os.WriteFile(file, []byte(full), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(file, nil); err != nil || c.Driver != Systemd {
		t.Errorf("%v", err)
	}
}

// Each key's example is a line of the file, and its default is a flag.
func TestKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		if seen[k.Name] || k.Help == "" || !strings.HasPrefix(k.Example, k.Name+": ") {
			t.Errorf("%+v", k)
		}
		seen[k.Name] = true
		if _, err := Parse("example", k.Example, nil); err != nil && !strings.Contains(k.Example, "cgroup-root: /") {
			t.Error(err)
		}
		if _, err := Parse("", "", []Override{{k.Name, k.Default}}); err != nil {
			t.Errorf("%s=%s: %v", k.Name, k.Default, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(full)
	for _, k := range Keys() {
		f.Add(k.Example)
	}
	for text := range refused {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("f", text, nil)
		if err == nil && (c.Driver == "" || c.Workloads() == "" || c.Recheck == 0) {
			t.Errorf("%q: %+v", text, c)
		}
	})
}
