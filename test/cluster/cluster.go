package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// partsVariable names the directory that run has put together: bin, cni, packages and images, which
// the nodes see as /share. shellVariable has the cluster stay for a shell.
const (
	partsVariable = "BERTH_CLUSTER_PARTS"
	shellVariable = "BERTH_CLUSTER_SHELL"
)

// A Cluster is the whole, with its processes on this machine.
type Cluster struct {
	t     testing.TB
	parts string
	// work is parts/run, for what is of this run only: certificates, logs, etcd's data.
	work  string
	Nodes []*Node
}

// New starts a cluster of nodes without Berth, or takes the one that a shell was given (run
// --shell), which is there as long as that is.
func New(t testing.TB, nodes int) *Cluster {
	t.Helper()
	parts := os.Getenv(partsVariable)
	if parts == "" {
		t.Skip("needs Kubernetes, built, and two guests: make test-cluster")
	}
	// The processes that this one starts end with the thread that starts them.
	runtime.LockOSThread()
	c := &Cluster{t: t, parts: parts, work: filepath.Join(parts, "run")}
	for n := 1; n <= nodes; n++ {
		name := fmt.Sprintf("node-%d", n)
		c.Nodes = append(c.Nodes, &Node{Name: name, Address: fmt.Sprintf(nodeAddressForm, n), number: n, guest: "cluster-" + filepath.Base(parts) + "-" + name})
	}
	standing := filepath.Join(c.work, "standing")
	if _, err := os.Stat(standing); err == nil {
		return c
	}
	c.network(nodes)
	c.certify()
	c.images()
	c.control()
	c.boot()
	for _, n := range c.Nodes {
		c.Wait(n.Name+" joining the cluster", func() (string, bool) {
			out, err := c.try("get", "node", n.Name)
			return out, err == nil
		})
	}
	c.Kubectl(t, "wait", "--for=condition=Ready", "nodes", "--all", "--timeout", patience.String())
	t.Log("\n" + c.Kubectl(t, "get", "nodes", "-o", "wide"))
	if err := os.WriteFile(standing, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// install brings Berth onto the nodes as build/deploy/README.md says, by its manifests as they are.
func (c *Cluster) install(t *testing.T) {
	t.Helper()
	deploy := filepath.Join("..", "..", "build", "deploy")
	c.Kubectl(t, "label", "--overwrite", "node", "--all", "berth.dev/install=true")
	c.Kubectl(t, "apply", "-f", filepath.Join(deploy, "daemonset.yaml"), "-f", filepath.Join(deploy, "runtimeclass.yaml"))
	c.Kubectl(t, "--namespace", "kube-system", "rollout", "status", "daemonset/berth-installer", "--timeout", patience.String())
	for _, n := range c.Nodes {
		// What the kubelet has been told of its runtimes, which it asks for again and again.
		c.WaitIn(t, n.Name+" having the runtime", func() (string, bool) {
			out, err := c.try("get", "node", n.Name, "-o", `jsonpath={range .status.runtimeHandlers[*]}{.name} {.features}{"\n"}{end}`)
			return out, err == nil && strings.Contains("\n"+out, "\nberth ")
		})
	}
	t.Log("\n" + c.Kubectl(t, "--namespace", "kube-system", "logs", "--selector", "app=berth-installer", "--container", "install", "--prefix"))
}
