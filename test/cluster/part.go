package cluster

import (
	"fmt"
	"strings"
	"testing"
)

// A Part is one subject that is tried on the cluster, in a namespace of its own.
type Part struct {
	*Cluster
	T         *testing.T
	Namespace string
}

// part runs one and then looks for what containers of Berth have left on the nodes.
func (c *Cluster) part(t *testing.T, name string, test func(*Part)) {
	p := &Part{Cluster: c, T: t, Namespace: strings.ToLower(name)}
	c.Kubectl(t, "create", "namespace", p.Namespace)
	defer func() {
		if t.Failed() {
			for _, what := range []string{"pods -o wide", "events --sort-by=.lastTimestamp"} {
				out, _ := c.try(append([]string{"--namespace", p.Namespace, "get"}, strings.Fields(what)...)...)
				t.Logf("%s:\n%s", what, out)
			}
		}
		c.Kubectl(t, "delete", "namespace", p.Namespace, "--timeout", patience.String())
		for _, n := range c.Nodes {
			c.WaitIn(t, n.Name+" without remains of containers", func() (string, bool) {
				out, err := c.TryExec(n, "bash", "-c", remains)
				return out, err == nil && out == ""
			})
		}
	}()
	test(p)
}

// remains prints what a container of Berth's leaves if it leaves anything. The pods of the
// installer, that stay, are runc's. berth:root marks the engine's state directory, and stays.
const remains = `
find /run/containerd/berth/k8s.io -mindepth 1 ! -name berth:root 2> /dev/null
ps -eo pid,args | grep '[c]ontainerd-shim-berth-v2'
systemctl list-units --all --plain --no-legend 'cri-containerd-*' | while read -r unit _; do
	id=${unit#cri-containerd-} id=${id%.scope}
	ctr --namespace k8s.io containers info "$id" > /dev/null 2>&1 || echo "$unit"
done
true`

// Kubectl is the cluster's, in the part's namespace.
func (p *Part) Kubectl(args ...string) string {
	p.T.Helper()
	return p.Cluster.Kubectl(p.T, append([]string{"--namespace", p.Namespace}, args...)...)
}

// Try is Kubectl for what may fail.
func (p *Part) Try(args ...string) (string, error) {
	return p.try(append([]string{"--namespace", p.Namespace}, args...)...)
}

// Apply creates the objects of a manifest in the part's namespace. IMAGE in it is the tools'.
func (p *Part) Apply(manifest string) {
	p.T.Helper()
	cmd := p.kubectl("--namespace", p.Namespace, "apply", "-f", "-")
	manifest = strings.ReplaceAll(strings.ReplaceAll(manifest, "\t", "  "), "IMAGE", toolsImage)
	cmd.Stdin = strings.NewReader(manifest)
	if out, err := cmd.CombinedOutput(); err != nil {
		p.T.Fatalf("kubectl apply: %v\n%s\n%s", err, out, manifest)
	}
}

// Pod creates a pod of Berth's and waits until it is ready. What follows its spec is indented as
// the entries there: containers:, and so on.
func (p *Part) Pod(name, spec string) {
	p.T.Helper()
	p.Create(name, spec)
	p.Kubectl("wait", "--for=condition=Ready", "pod/"+name, "--timeout", patience.String())
}

// Create is Pod without the waiting.
func (p *Part) Create(name, spec string) {
	p.T.Helper()
	p.Apply(fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\nspec:\n  runtimeClassName: berth\n  terminationGracePeriodSeconds: 5\n%s", name, indent(spec)))
}

// indent has each line two spaces further right.
func indent(text string) string {
	text = strings.TrimPrefix(text, "\n")
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n\t "), "\n", "\n  ") + "\n"
}

// Phase waits for a pod's phase.
func (p *Part) Phase(name, phase string) {
	p.T.Helper()
	p.Kubectl("wait", "--for=jsonpath={.status.phase}="+phase, "pod/"+name, "--timeout", patience.String())
}

// Get is one field of an object.
func (p *Part) Get(object, path string) string {
	p.T.Helper()
	return p.Kubectl("get", object, "-o", "jsonpath="+path)
}

// Sh runs a shell's command in a pod's first container, and gives what it printed.
func (p *Part) Sh(pod, command string) string {
	p.T.Helper()
	return p.Kubectl("exec", pod, "--", "sh", "-c", command)
}

// Expect fails where a text is another one than it should be, but for space around it.
func (p *Part) Expect(what, got, want string) {
	p.T.Helper()
	if strings.TrimSpace(got) != strings.TrimSpace(want) {
		p.T.Errorf("%s: %q, not %q", what, got, want)
	}
}

// NodeOf is where a pod runs.
func (p *Part) NodeOf(pod string) *Node {
	p.T.Helper()
	name := p.Get("pod/"+pod, "{.spec.nodeName}")
	for _, n := range p.Nodes {
		if n.Name == name {
			return n
		}
	}
	p.T.Fatalf("pod %s is on %q, which is no node", pod, name)
	return nil
}

// UnderBerth fails unless the containers that a pod's status names are Berth's.
func (p *Part) UnderBerth(pod string) {
	p.T.Helper()
	node := p.NodeOf(pod)
	for id := range strings.FieldsSeq(p.Get("pod/"+pod, "{.status.containerStatuses[*].containerID}")) {
		id = strings.TrimPrefix(id, "containerd://")
		out := p.Exec(p.T, node, "/usr/local/bin/berth", "--root", "/run/containerd/berth/k8s.io", "list", "--quiet")
		if !strings.Contains(out, id) {
			p.T.Errorf("%s is none of Berth's on %s: %q", id, node.Name, out)
		}
	}
}
