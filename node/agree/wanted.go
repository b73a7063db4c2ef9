package agree

import (
	"fmt"
	"strings"

	"github.com/berth-runtime/berth/internal/ptr"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/config/resource"
	"github.com/berth-runtime/berth/node/plan"
	"go.yaml.in/yaml/v3"
)

// Wanted is the configuration of a kubelet that matches a plan.
func Wanted(p *plan.Plan) *Kubelet {
	k := &Kubelet{APIVersion: "kubelet.config.k8s.io/v1beta1", Kind: "KubeletConfiguration",
		CgroupDriver: string(p.Driver), CgroupRoot: p.Config.CgroupRoot, CgroupsPerQOS: ptr.To(p.Config.CgroupsPerQoS),
		EnforceNodeAllocatable: []string{}, SystemReserved: map[string]string{}, KubeReserved: map[string]string{}}
	switch {
	case !p.Config.CgroupsPerQoS: // the kubelet refuses any word then, none as well
	case p.Config.PodsEnforce == config.Nothing:
		k.EnforceNodeAllocatable = []string{"pods"}
	default:
		k.EnforceNodeAllocatable = []string{"none"}
	}
	if at, ok := p.Place(plan.System); ok {
		k.SystemReservedCgroup = at.Path
	}
	if at, ok := p.Place(plan.Kube); ok {
		k.KubeReservedCgroup = at.Path
	}
	for _, r := range p.Resources {
		name := kubeletName(r.Name)
		if name == "" {
			continue
		}
		if r.System > 0 {
			k.SystemReserved[name] = r.Name.Format(r.System)
		}
		if r.Kube > 0 {
			k.KubeReserved[name] = r.Name.Format(r.Kube)
		}
	}
	if len(p.Config.EvictionHard) > 0 {
		k.EvictionHard = defaultEviction()
		// Not left out: what a drop-in lacks keeps the kubelet's default. 0% is no threshold.
		k.EvictionHard["memory.available"], k.EvictionHard["nodefs.available"] = "0%", "0%"
		for name, amount := range p.Config.EvictionHard {
			k.EvictionHard[signals[name]] = amount.Quantity.String()
		}
	}
	return k
}

// kubeletName is the kubelet's for a resource that can be reserved; "" for huge pages, which it
// refuses to reserve: it counts those that are free.
func kubeletName(n resource.Name) string {
	switch n {
	case resource.CPU, resource.Memory, resource.EphemeralStorage:
		return string(n)
	case resource.PIDs:
		return "pid"
	}
	return ""
}

// signals are the kubelet's names for what is kept free.
var signals = map[resource.Name]string{resource.Memory: "memory.available", resource.EphemeralStorage: "nodefs.available", resource.PIDs: "pid.available"}

// YAML writes a kubelet's configuration, with a word on what is not in it.
func YAML(p *plan.Plan) ([]byte, error) {
	k := Wanted(p)
	body, err := yaml.Marshal(k)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("# From berth-node's plan: a drop-in for the kubelet's --config-dir, as /etc/kubernetes/kubelet.conf.d/20-berth.conf,\n" +
		"# or to be merged into its --config file. berth-node kubelet-config --containerd prints containerd's part.\n")
	owner := Owner(p)
	if owner != "" {
		b.WriteString("# " + owner + "\n")
	}
	if k.EvictionHard == nil {
		b.WriteString("# eviction-hard is not set in berth-node's configuration: the kubelet's defaults hold, and are not in the arithmetic.\n")
	}
	for _, r := range p.Resources {
		if r.Name.PageSize() > 0 && r.System+r.Kube > 0 {
			fmt.Fprintf(&b, "# %s can't be reserved by a kubelet: pods may request all of it.\n", r.Name)
		}
	}
	return append([]byte(b.String()), body...), nil
}

// Owner says who limits the workloads' cgroup where pods have QoS levels, "" elsewhere. Both would
// write its weight; pods-enforce decides.
func Owner(p *plan.Plan) string {
	at, ok := p.Place(plan.Workloads)
	if !ok || !p.Config.CgroupsPerQoS {
		return ""
	}
	name := at.Path
	if at.Slice != "" {
		name = at.Slice
	}
	cause := p.Config.Cause("pods-enforce")
	switch p.Config.PodsEnforce {
	case config.Nothing:
		return fmt.Sprintf("%s belongs to the kubelet, with its weight and limits (%s: false): berth-node writes nothing there.", name, cause)
	case config.CPUOnly:
		return fmt.Sprintf("the weight of %s belongs to berth-node (%s: cpu): the kubelet writes its own when it starts, and berth-node watch restores it.", name, cause)
	}
	return fmt.Sprintf("%s belongs to berth-node, with its weight and limits (%s: true): the kubelet writes its own weight when it starts, and berth-node watch restores it.", name, cause)
}

// ContainerdTOML writes the drop-in for containerd 2 that matches a plan.
func ContainerdTOML(p *plan.Plan) []byte {
	systemd := p.Driver == config.Systemd
	var b strings.Builder
	b.WriteString("# From berth-node's plan: /etc/containerd/conf.d/20-berth.toml, for containerd 2. config.toml has to import it, which is the\n" +
		"# default from 2.2 on: imports = ['/etc/containerd/conf.d/*.toml']. containerd 1 replaces whole sections by those of drop-ins:\n" +
		"# write the values into config.toml there, in plugins.\"io.containerd.grpc.v1.cri\" (see docs/kubernetes.md).\n" +
		"version = 3\n")
	for _, r := range []struct{ name, more string }{{"runc", ""}, {"berth", "  runtime_path = '/usr/bin/containerd-shim-berth-v2'\n"}} {
		table := "plugins.'" + plugins[0] + "'.containerd.runtimes." + r.name
		fmt.Fprintf(&b, "\n[%s]\n  runtime_type = 'io.containerd.runc.v2'\n%s\n  [%s.options]\n    SystemdCgroup = %v\n", table, r.more, table, systemd)
	}
	return []byte(b.String())
}
