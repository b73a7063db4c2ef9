package cluster

import (
	"fmt"
	"os"
	"strings"
)

// A node without the installer's Berth gets it by the Debian package and the table of
// docs/kubernetes.md, as that page says, with the package's path.
func testPackage(p *Part) {
	node := p.Nodes[1]
	p.Cluster.Kubectl(p.T, "--namespace", "kube-system", "delete", "daemonset/berth-installer", "--timeout", patience.String())
	p.Exec(p.T, node, "/share/deploy/uninstall")
	p.Exec(p.T, node, "rm", "/usr/local/bin/containerd-shim-berth-v2", "/usr/local/bin/berth")
	p.without(node)

	p.Exec(p.T, node, "dpkg", "--install", "/share/berth.deb")
	page, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		p.T.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "```toml\nversion = 3\n")
	table, _, there := strings.Cut(table, "```")
	table = strings.Replace(table, "/usr/local/bin/", "/usr/bin/", 1)
	if !there || !strings.Contains(table, `"/usr/bin/containerd-shim-berth-v2"`) {
		p.T.Fatalf("docs/kubernetes.md has no such table for containerd 2: %s", table)
	}
	p.Exec(p.T, node, "bash", "-c", fmt.Sprintf("cat >> /etc/containerd/config.toml <<'TABLE'\n%sTABLE\nsystemctl restart containerd", table))
	p.Pod("packaged", fmt.Sprintf(`
nodeSelector: {kubernetes.io/hostname: %s}
containers:
- name: main
  image: IMAGE
  command: ["sleep", "3600"]
`, node.Name))
	if shims := p.Exec(p.T, node, "bash", "-c", "readlink /proc/[0-9]*/exe | grep berth"); strings.TrimSpace(shims) != "/usr/bin/containerd-shim-berth-v2" {
		p.T.Errorf("what runs of Berth: %s", shims)
	}
	p.Expect("in the pod", p.Sh("packaged", "echo there"), "there")
}

// without waits until the kubelet knows that the node has no runtime of Berth's.
func (p *Part) without(node *Node) {
	p.T.Helper()
	p.WaitIn(p.T, node.Name+" without the runtime", func() (string, bool) {
		out, err := p.try("get", "node", node.Name, "-o", "jsonpath={.status.runtimeHandlers[*].name}")
		return out, err == nil && !strings.Contains(out, "berth")
	})
}
