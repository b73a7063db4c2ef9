package config

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/berth-runtime/berth/cgroup/systemd/unit"
	"github.com/berth-runtime/berth/node/config/quantity"
	"github.com/berth-runtime/berth/node/config/resource"
	"github.com/berth-runtime/berth/node/config/yaml"
)

// Key is one entry of the configuration.
type Key struct {
	Name string
	// Value is what help calls its value; "" for one that may stand alone as a flag.
	Value   string
	Map     bool // a mapping in the file, KEY=VALUE,… as a flag
	Help    string
	Default string
	Example string

	set   func(c *Config, cause string, v *yaml.Node) error
	reset func(c *Config)
}

// Keys are all entries, in the order in which the docs show them.
func Keys() []*Key {
	return []*Key{
		{Name: "cgroup-driver", Value: "DRIVER", Default: "auto", Example: "cgroup-driver: systemd",
			Help: "what creates cgroups: systemd, cgroupfs, or auto for systemd if it is the init system",
			set:  word(func(c *Config) *Driver { return &c.Driver }, Auto, Systemd, Cgroupfs)},
		{Name: "cgroup-root", Value: "PATH", Default: "/machine", Example: "cgroup-root: /machine",
			Help: "cgroup of the workloads; /foo/bar is foo-bar.slice under systemd",
			set:  cgroupPath(func(c *Config) *string { return &c.CgroupRoot })},
		{Name: "cgroups-per-qos", Default: "false", Example: "cgroups-per-qos: true",
			Help: "workloads are in kubepods with its QoS levels below the cgroup-root, the layout of current kubelets",
			set:  boolean(func(c *Config) *bool { return &c.CgroupsPerQoS })},
		{Name: "system-reserved", Value: "RESOURCES", Map: true, Example: "system-reserved: {cpu: 500m, memory: 1Gi}",
			Help:  "reserved for the host's daemons: cpu=500m,memory=1Gi,pids=1000,ephemeral-storage=10%,hugepages-2Mi=4Mi",
			set:   amounts(func(c *Config) *Amounts { return &c.SystemReserved }, resource.Parse),
			reset: func(c *Config) { c.SystemReserved = nil }},
		{Name: "kube-reserved", Value: "RESOURCES", Map: true, Example: "kube-reserved: {cpu: 500m, memory: 512Mi}",
			Help:  "reserved for Kubernetes' daemons, in the same notation",
			set:   amounts(func(c *Config) *Amounts { return &c.KubeReserved }, resource.Parse),
			reset: func(c *Config) { c.KubeReserved = nil }},
		{Name: "eviction-hard", Value: "SIGNALS", Map: true, Example: "eviction-hard: {memory.available: 100Mi}",
			Help:  "kept free by eviction: memory.available<100Mi,nodefs.available<10%,pid.available<1000",
			set:   amounts(func(c *Config) *Amounts { return &c.EvictionHard }, signal),
			reset: func(c *Config) { c.EvictionHard = nil }},
		{Name: "eviction", Value: "MODE", Default: "off", Example: "eviction: kill",
			Help: "what watch does on a node without a kubelet when less is left than eviction-hard: off, or kill a container",
			set:  word(func(c *Config) *Mode { return &c.Eviction }, Off, Kill)},
		{Name: "system-container", Value: "PATH", Example: "system-container: /system",
			Help: "cgroup that system-reserved applies to. Default under systemd: /system (system.slice). Under cgroupfs: none; if set, it is created and gets all processes of the root cgroup",
			set:  cgroupPath(func(c *Config) *string { return &c.SystemContainer })},
		{Name: "kube-container", Value: "PATH", Example: "kube-container: /kubernetes",
			Help: "cgroup that kube-reserved applies to. Default under systemd, if kube-reserved is set: /kubernetes (kubernetes.slice)",
			set:  cgroupPath(func(c *Config) *string { return &c.KubeContainer })},
		{Name: "resource-container", Value: "PATH", Example: "resource-container: /kubelet",
			Help: "cgroup to create and move the kubelet into; not under systemd",
			set:  cgroupPath(func(c *Config) *string { return &c.ResourceContainer })},
		{Name: "system-reserved-enforce", Default: "false", Example: "system-reserved-enforce: true",
			Help: "limit the system container to system-reserved: true, false, or cpu for the weight only",
			set:  word(func(c *Config) *Enforce { return &c.SystemEnforce }, Nothing, All, CPUOnly)},
		{Name: "kube-reserved-enforce", Default: "false", Example: "kube-reserved-enforce: cpu",
			Help: "the same for the kube container",
			set:  word(func(c *Config) *Enforce { return &c.KubeEnforce }, Nothing, All, CPUOnly)},
		{Name: "pods-enforce", Default: "false", Example: "pods-enforce: true",
			Help: "limit the workloads to what is not reserved: true, false or cpu",
			set:  word(func(c *Config) *Enforce { return &c.PodsEnforce }, Nothing, All, CPUOnly)},
		{Name: "reserved-protect", Default: "false", Example: "reserved-protect: true",
			Help: "protect the reserved memory of enforced containers from reclaim (memory.min; cgroup v2 only)",
			set:  boolean(func(c *Config) *bool { return &c.Protect })},
		{Name: "properties", Value: "HOW", Default: "runtime", Example: "properties: persistent",
			Help: "how long systemd keeps the limits: runtime (until the next boot) or persistent",
			set:  word(func(c *Config) *Lasting { return &c.Properties }, Runtime, Persistent)},
		{Name: "berth-parent", Value: "MODE", Default: "set", Example: "berth-parent: check",
			Help: "what to do about cgroup-parent in /etc/berth/berth.toml, by which berth and its shim put containers below the workloads: off, check or set",
			set:  word(func(c *Config) *Mode { return &c.BerthParent }, Off, Check, Set)},
		{Name: "kernel-parameters", Value: "MODE", Default: "check", Example: "kernel-parameters: set",
			Help: "vm.overcommit_memory=1, vm.panic_on_oom=0, kernel.panic=10, kernel.panic_on_oops=1: off, check or set",
			set:  word(func(c *Config) *Mode { return &c.Parameters }, Off, Check, Set)},
		{Name: "oom-scores", Value: "SCORES", Map: true, Default: "kubelet=-999,kube-proxy=-999,containerd=-999,crio=-999,dockerd=-900",
			Example: "oom-scores: {kubelet.service: -999, /usr/bin/containerd: -900}",
			Help:    "OOM scores of daemons, by unit, by path of the executable, or by its name if root owns the file",
			set:     oomScore, reset: func(c *Config) { c.Scores = map[string]Score{} }},
		{Name: "oom-score-mode", Value: "MODE", Default: "check", Example: "oom-score-mode: set",
			Help: "what to do about OOM scores: off, check or set",
			set:  word(func(c *Config) *Mode { return &c.ScoreMode }, Off, Check, Set)},
		{Name: "reclaim-deadline", Value: "TIME", Default: "30s", Example: "reclaim-deadline: 30s",
			Help: "how long reclaiming memory may take before a lower limit is given up",
			set:  duration(func(c *Config) *time.Duration { return &c.ReclaimDeadline }, 100*time.Millisecond)},
		{Name: "reclaim-pressure", Value: "SHARE", Default: "60%", Example: "reclaim-pressure: 60%",
			Help: "memory pressure (some, of the last 10 s) at which a lower limit is given up",
			set:  share(func(c *Config) *quantity.Quantity { return &c.ReclaimPressure })},
		{Name: "recheck-interval", Value: "TIME", Default: "1m", Example: "recheck-interval: 1m",
			Help: "how often to check everything, on top of the kernel's and systemd's notifications",
			set:  duration(func(c *Config) *time.Duration { return &c.Recheck }, time.Second)},
		{Name: "listen", Value: "ADDRESS", Default: "127.0.0.1:9841", Example: "listen: 127.0.0.1:9841",
			Help: "where watch serves /metrics and /healthz: host:port, unix:PATH or off",
			set:  listen},
		{Name: "state-dir", Value: "DIR", Default: "/var/lib/berth-node", Example: "state-dir: /var/lib/berth-node",
			Help: "directory of the record that undo restores the node from",
			set: func(c *Config, _ string, v *yaml.Node) error {
				if !path.IsAbs(v.Text) {
					return fmt.Errorf("%q is not an absolute path", v.Text)
				}
				c.StateDir = path.Clean(v.Text)
				return nil
			}},
	}
}

func find(name string) *Key {
	for _, k := range Keys() {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// nearest suggests the key that was meant, if one differs by a few letters.
func nearest(name string) string {
	best, least := "", 4
	for _, k := range Keys() {
		if d := distance(name, k.Name); d < least {
			best, least = k.Name, d
		}
	}
	if best == "" {
		return "; berth-node plan --help has them all"
	}
	return ": is it " + best + "?"
}

// distance counts the letters to change, put in or leave out.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// flagNode makes of a flag's text what the file would have.
func flagNode(k *Key, text string) *yaml.Node {
	if !k.Map {
		return &yaml.Node{Text: text}
	}
	m := &yaml.Node{Mapping: true}
	for pair := range strings.SplitSeq(text, ",") {
		if pair == "" {
			continue
		}
		at := strings.IndexAny(pair, "=<")
		if at < 0 {
			at = len(pair)
		}
		value := ""
		if at < len(pair) {
			value = pair[at+1:]
		}
		m.Members = append(m.Members, yaml.Member{Key: pair[:at], Value: &yaml.Node{Text: value}})
	}
	return m
}

func word[T ~string](field func(*Config) *T, words ...T) func(*Config, string, *yaml.Node) error {
	return func(c *Config, _ string, v *yaml.Node) error {
		for _, w := range words {
			if string(w) == v.Text {
				*field(c) = w
				return nil
			}
		}
		list := ""
		for i, w := range words {
			if i > 0 {
				list += ", "
			}
			list += string(w)
		}
		return fmt.Errorf("%.40q is none of %s", v.Text, list)
	}
}

func boolean(field func(*Config) *bool) func(*Config, string, *yaml.Node) error {
	return func(c *Config, _ string, v *yaml.Node) error {
		switch v.Text {
		case "true":
			*field(c) = true
		case "false":
			*field(c) = false
		default:
			return fmt.Errorf("%.40q is neither true nor false", v.Text)
		}
		return nil
	}
}

func duration(field func(*Config) *time.Duration, least time.Duration) func(*Config, string, *yaml.Node) error {
	return func(c *Config, _ string, v *yaml.Node) error {
		d, err := time.ParseDuration(v.Text)
		if err != nil {
			return fmt.Errorf("%.40q is not a time: write it as 30s or 1m30s", v.Text)
		}
		if d < least || d > 24*time.Hour {
			return fmt.Errorf("%s is not between %s and 24h", v.Text, least)
		}
		*field(c) = d
		return nil
	}
}

func share(field func(*Config) *quantity.Quantity) func(*Config, string, *yaml.Node) error {
	return func(c *Config, _ string, v *yaml.Node) error {
		q, err := quantity.Parse(v.Text)
		if err != nil {
			return err
		}
		if !q.IsPercent() {
			return fmt.Errorf("%s is not a share: write it as 60%%", v.Text)
		}
		*field(c) = q
		return nil
	}
}

// cgroupPath takes the notation of paths, and nothing that is encoded for systemd
// already: it would be encoded twice.
func cgroupPath(field func(*Config) *string) func(*Config, string, *yaml.Node) error {
	return func(c *Config, _ string, v *yaml.Node) error {
		p := v.Text
		switch {
		case p == "":
			*field(c) = ""
			return nil
		case strings.HasSuffix(p, ".slice"):
			plain, err := unit.SlicePathName(path.Base(p))
			if err != nil {
				plain = "a path, as /foo/bar for foo-bar.slice"
			}
			return fmt.Errorf("%q is the name of a slice already, and would be encoded twice: write %s", p, plain)
		case strings.Contains(p, `\x`):
			return fmt.Errorf("%q is escaped for systemd already, and would be encoded twice: write the plain path", p)
		case !path.IsAbs(p):
			return fmt.Errorf("%q is not an absolute path", p)
		case path.Clean(p) != p:
			return fmt.Errorf("%q is not in its shortest form, which is %s", p, path.Clean(p))
		}
		*field(c) = p
		return nil
	}
}

func amounts(field func(*Config) *Amounts, name func(string) (resource.Name, error)) func(*Config, string, *yaml.Node) error {
	return func(c *Config, cause string, v *yaml.Node) error {
		for _, m := range v.Members {
			n, err := name(m.Key)
			if err != nil {
				return err
			}
			q, err := quantity.Parse(m.Value.Text)
			if err != nil {
				return err
			}
			list := field(c)
			if *list == nil {
				*list = Amounts{}
			}
			if _, twice := (*list)[n]; twice {
				return fmt.Errorf("%s is given twice", n)
			}
			(*list)[n] = Amount{q, cause}
		}
		return nil
	}
}

// signal gives the resource that an eviction signal watches.
func signal(text string) (resource.Name, error) {
	switch text {
	case "memory.available":
		return resource.Memory, nil
	case "nodefs.available":
		return resource.EphemeralStorage, nil
	case "pid.available":
		return resource.PIDs, nil
	}
	return "", fmt.Errorf("there is no eviction signal %.40q; signals are memory.available, nodefs.available and pid.available", text)
}

func oomScore(c *Config, cause string, v *yaml.Node) error {
	for _, m := range v.Members {
		n, err := strconv.Atoi(m.Value.Text)
		if err != nil || n < -1000 || n > 1000 {
			return fmt.Errorf("%.20q is no OOM score: it is a whole number from -1000 to 1000", m.Value.Text)
		}
		if m.Key == "" || strings.Contains(m.Key, "/") && !path.IsAbs(m.Key) {
			return errors.New("a daemon is named by its unit, by the absolute path of its executable, or by the name of that")
		}
		c.Scores[m.Key] = Score{n, cause}
	}
	return nil
}

func listen(c *Config, _ string, v *yaml.Node) error {
	switch at, port, ok := strings.Cut(v.Text, ":"); {
	case v.Text == "off":
	case !ok:
		return fmt.Errorf("%.60q is not an address: write host:port, unix:PATH or off", v.Text)
	case at == "unix":
		if !path.IsAbs(port) {
			return fmt.Errorf("%q is not an absolute path", port)
		}
	}
	c.Listen = v.Text
	return nil
}
