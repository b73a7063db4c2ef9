package agree

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/internal/settings"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/config/quantity"
	"github.com/berth-runtime/berth/node/config/resource"
	"github.com/berth-runtime/berth/node/plan"
)

// Difference is something that two programs of the node do not agree on.
type Difference struct {
	Who    string `json:"who"` // the program whose configuration is to change, or is to be looked at first
	Found  string `json:"found"`
	Change string `json:"change"`
}

func (d Difference) String() string { return d.Who + ": " + d.Found + ": " + d.Change }

// Report is what was compared, and how that came out.
type Report struct {
	// Compared are the programs of which a configuration was found.
	Compared    []string     `json:"compared"`
	Differences []Difference `json:"differences"`
}

type comparison struct {
	root string
	p    *plan.Plan
	Report
}

func (c *comparison) differ(who, change, found string, args ...any) {
	c.Differences = append(c.Differences, Difference{who, fmt.Sprintf(found, args...), change})
}

// Compare holds the programs of a machine against a plan. root is the directory that stands for /.
func Compare(root string, p *plan.Plan) *Report {
	c := &comparison{root, p, Report{Compared: []string{"berth-node"}, Differences: []Difference{}}}
	if n := len(p.Changes()); n > 0 {
		is := "are"
		if n == 1 {
			is = "is"
		}
		c.differ("berth-node", "run berth-node apply", "%d of %d settings %s not in effect", n, len(p.Steps), is)
	}
	c.berth()
	c.kubelet()
	c.containerd()
	c.docker()
	return &c.Report
}

// berth looks at the settings that berth and its shim read.
func (c *comparison) berth() {
	s := c.p.Facts.Settings
	if s == (settings.Settings{Driver: settings.Auto}) && c.p.Config.BerthParent == config.Off {
		return
	}
	c.Compared = append(c.Compared, "berth")
	if want := c.p.Config.Workloads(); want != "/" && s.Parent != want {
		found := fmt.Sprintf("cgroup-parent is %q", s.Parent)
		if s.Parent == "" {
			found = "cgroup-parent is not set"
		}
		c.differ("berth", fmt.Sprintf("set cgroup-parent = %q, or berth-parent: set and berth-node apply", want), "%s in %s, the workloads are in %s", found, settings.File, want)
	}
	if s.Driver != settings.Auto && string(s.Driver) != string(c.p.Driver) {
		c.differ("berth", `set cgroup-driver = "auto"`, "cgroup-driver is %q in %s, berth-node uses %s", s.Driver, settings.File, c.p.Driver)
	}
}

func (c *comparison) kubelet() {
	pid := 0
	if k := c.p.Facts.Kubelet; k != nil {
		pid = k.PID
	}
	k, err := ReadKubelet(c.root, pid)
	if err != nil {
		c.differ("kubelet", "mend or move that file", "%v", err)
		return
	}
	if k == nil {
		return
	}
	c.Compared = append(c.Compared, "kubelet")
	want := Wanted(c.p)
	differ := func(change, found string, args ...any) {
		c.differ("kubelet", change, "%s", fmt.Sprintf(found, args...)+" ("+k.File+")")
	}
	if driver := k.CgroupDriver; driver != want.CgroupDriver {
		found := fmt.Sprintf("cgroupDriver is %s", driver)
		if driver == "" {
			found, driver = "cgroupDriver is not set, and cgroupfs by default", "cgroupfs"
		}
		if driver != want.CgroupDriver {
			differ("set cgroupDriver: "+want.CgroupDriver, "%s, berth-node uses %s", found, want.CgroupDriver)
		}
	}
	if k.qos() != *want.CgroupsPerQOS {
		differ(fmt.Sprintf("set cgroups-per-qos: %v in berth-node's configuration", k.qos()), "cgroupsPerQOS is %v, berth-node has %v", k.qos(), *want.CgroupsPerQOS)
	}
	if at := path.Join("/", k.CgroupRoot); at != want.CgroupRoot {
		differ("set cgroupRoot: "+want.CgroupRoot, "cgroupRoot is %s, berth-node's cgroup-root is %s", at, want.CgroupRoot)
	}
	for _, r := range c.p.Resources {
		name := kubeletName(r.Name)
		if name == "" {
			continue
		}
		c.reserved(differ, "systemReserved", "system-reserved", name, k.SystemReserved[name], r.Name, r.Capacity, r.System)
		c.reserved(differ, "kubeReserved", "kube-reserved", name, k.KubeReserved[name], r.Name, r.Capacity, r.Kube)
		if signal := signals[r.Name]; signal != "" {
			c.reserved(differ, "evictionHard", "eviction-hard", signal, k.eviction()[signal], r.Name, r.Capacity, r.Eviction)
		}
	}
	c.enforcement(differ, k, want)
}

// reserved compares one amount.
func (c *comparison) reserved(differ func(change, found string, args ...any), entry, key, name, text string, n resource.Name, capacity, want int64) {
	have := int64(0)
	if text != "" {
		q, err := quantity.Parse(text)
		if err == nil {
			have, err = q.In(n.PerUnit(), capacity)
		}
		if err != nil {
			differ("set "+entry+": {"+name+": "+n.Format(want)+"}", "%s %s is %q: %v", entry, name, text, err)
			return
		}
	}
	if have == want {
		return
	}
	if want == 0 {
		differ(fmt.Sprintf("set %s: {%s: %s} in berth-node's configuration", key, name, text), "%s %s is %s, berth-node counts nothing", entry, name, text)
		return
	}
	if text == "" {
		text = "not set"
	}
	differ(fmt.Sprintf("set %s: {%s: %q}", entry, name, n.Format(want)), "%s %s is %s, berth-node counts %s", entry, name, text, n.Format(want))
}

// enforcement finds limits that both would write.
func (c *comparison) enforcement(differ func(change, found string, args ...any), k, want *Kubelet) {
	for _, e := range []struct {
		word, key  string
		enforce    config.Enforce
		have, want string
	}{
		{"pods", "pods-enforce", c.p.Config.PodsEnforce, "", ""},
		{"system-reserved", "system-reserved-enforce", c.p.Config.SystemEnforce, k.SystemReservedCgroup, want.SystemReservedCgroup},
		{"kube-reserved", "kube-reserved-enforce", c.p.Config.KubeEnforce, k.KubeReservedCgroup, want.KubeReservedCgroup},
	} {
		if !k.enforces(e.word) {
			continue
		}
		if e.enforce != config.Nothing {
			differ(fmt.Sprintf("remove %s from enforceNodeAllocatable, or set %s: false in berth-node's configuration", e.word, e.key),
				"enforceNodeAllocatable has %s, and berth-node has %s: %s: both write the same limits", e.word, e.key, e.enforce)
		}
		if e.word != "pods" && !sameGroup(e.have, e.want) {
			differ(fmt.Sprintf("set %sCgroup: %s", camel(e.word), e.want), "%sCgroup is %q, berth-node has %q", camel(e.word), e.have, e.want)
		}
	}
}

// sameGroup compares cgroups as a kubelet takes them: with systemd's suffix or without.
func sameGroup(a, b string) bool {
	plain := func(at string) string { return strings.TrimSuffix(strings.Trim(at, "/"), ".slice") }
	return plain(a) == plain(b)
}

func camel(word string) string { return strings.Replace(word, "-r", "R", 1) }

// containerd looks at the runtimes that pods get.
func (c *comparison) containerd() {
	runtimes, err := Containerd(c.root)
	if err != nil {
		c.differ("containerd", "mend that file", "%v", err)
		return
	}
	if len(runtimes) == 0 {
		return
	}
	c.Compared = append(c.Compared, "containerd")
	systemd := c.p.Driver == config.Systemd
	for _, r := range runtimes {
		own := r.Type == "io.containerd.berth.v2"
		if !own && r.Type != "io.containerd.runc.v2" {
			continue // it has other options, if any
		}
		found := "not set, and false by default"
		switch {
		case r.Systemd == nil && (own || !systemd):
			continue // berth's shim goes by the path that the kubelet gives it
		case r.Systemd != nil && *r.Systemd == systemd:
			continue
		case r.Systemd != nil:
			found = fmt.Sprint(*r.Systemd)
		}
		c.differ("containerd", fmt.Sprintf("set SystemdCgroup = %v in its options (berth-node kubelet-config --containerd), and restart containerd", systemd),
			"SystemdCgroup of the runtime %s is %s, berth-node uses %s", r.Name, found, c.p.Driver)
	}
}

// dockerFile is Docker's configuration.
const dockerFile = "/etc/docker/daemon.json"

func (c *comparison) docker() {
	runs := slices.ContainsFunc(c.p.Facts.Daemons, func(d plan.Daemon) bool { return d.Name == "dockerd" })
	text, err := os.ReadFile(c.root + dockerFile)
	if errors.Is(err, os.ErrNotExist) {
		if !runs {
			return
		}
		text, err = []byte("{}"), nil
	}
	var docker struct {
		Parent  string   `json:"cgroup-parent"`
		Options []string `json:"exec-opts"`
	}
	if err == nil {
		err = json.Unmarshal(text, &docker)
	}
	if err != nil {
		c.differ("docker", "mend that file", "read %s: %v", dockerFile, err)
		return
	}
	c.Compared = append(c.Compared, "docker")
	for _, option := range docker.Options {
		if driver, ok := strings.CutPrefix(option, "native.cgroupdriver="); ok && driver != string(c.p.Driver) {
			c.differ("docker", fmt.Sprintf(`set "exec-opts": ["native.cgroupdriver=%s"] and restart Docker`, c.p.Driver), "the cgroup driver is %s in %s, berth-node uses %s", driver, dockerFile, c.p.Driver)
		}
	}
	at, ok := c.p.Place(plan.Workloads)
	if !ok {
		return
	}
	want := at.Path
	if at.Slice != "" {
		want = at.Slice
	}
	if docker.Parent != want {
		found := fmt.Sprintf("%q", docker.Parent)
		if docker.Parent == "" {
			found = "not set"
		}
		c.differ("docker", fmt.Sprintf(`set "cgroup-parent": %q and restart Docker`, want), "cgroup-parent is %s in %s, the workloads are in %s", found, dockerFile, want)
	}
}

// Text lists the differences, one a line; safe makes of each what can be printed.
func (r *Report) Text(safe func(string) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "compared: %s\n", strings.Join(r.Compared, ", "))
	for _, d := range r.Differences {
		b.WriteString(safe(d.String()) + "\n")
	}
	if len(r.Differences) == 0 {
		b.WriteString("they agree on driver, cgroups and reservations\n")
	}
	return b.String()
}
