package cluster

import (
	"path/filepath"
	"strings"
)

// control starts etcd and the programs that talk to the API server, and waits until that is ready.
func (c *Cluster) control() {
	c.t.Helper()
	in := func(name string) string { return filepath.Join(c.work, name) }
	c.serve("etcd", "--data-dir", in("etcd"), "--listen-client-urls", "http://127.0.0.1:2379", "--advertise-client-urls", "http://127.0.0.1:2379",
		"--listen-peer-urls", "http://127.0.0.1:2380", "--initial-advertise-peer-urls", "http://127.0.0.1:2380", "--initial-cluster", "default=http://127.0.0.1:2380",
		// What it holds is thrown away: nothing is won by waiting for the disk.
		"--unsafe-no-fsync")
	c.serve("kube-apiserver", "--etcd-servers", "http://127.0.0.1:2379", "--bind-address", machineAddress, "--advertise-address", machineAddress,
		"--service-cluster-ip-range", serviceNetwork, "--allow-privileged", "--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction",
		"--client-ca-file", in("ca.crt"), "--tls-cert-file", in("apiserver.crt"), "--tls-private-key-file", in("apiserver.key"),
		"--kubelet-certificate-authority", in("ca.crt"), "--kubelet-client-certificate", in("admin.crt"), "--kubelet-client-key", in("admin.key"),
		"--kubelet-preferred-address-types", "InternalIP",
		"--service-account-issuer", "https://cluster.test", "--service-account-key-file", in("sa.key"), "--service-account-signing-key-file", in("sa.key"))
	c.Wait("the API server", func() (string, bool) {
		out, err := c.try("get", "--raw", "/readyz")
		return out, err == nil && strings.TrimSpace(out) == "ok"
	})
	c.serve("kube-controller-manager", "--kubeconfig", in("controller-manager.kubeconfig"), "--use-service-account-credentials",
		"--service-account-private-key-file", in("sa.key"), "--root-ca-file", in("ca.crt"),
		// A node that is gone is found out about in seconds, which is what the tests wait for.
		"--node-monitor-grace-period", "60s", "--leader-elect=false")
	c.serve("kube-scheduler", "--kubeconfig", in("scheduler.kubeconfig"), "--leader-elect=false")
}

// certify makes the certificates of all parts.
func (c *Cluster) certify() {
	c.t.Helper()
	a, err := newAuthority(c.work)
	if err != nil {
		c.t.Fatal(err)
	}
	must := func(err error) {
		c.t.Helper()
		if err != nil {
			c.t.Fatal(err)
		}
	}
	must(a.issue("apiserver", "kube-apiserver", "", machineAddress, firstService, "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"))
	for _, user := range [][3]string{
		{"admin", "admin", "system:masters"},
		{"controller-manager", "system:kube-controller-manager", ""},
		{"scheduler", "system:kube-scheduler", ""},
	} {
		must(a.kubeconfig(user[0], user[1], user[2], c.work))
	}
	for _, n := range c.Nodes {
		must(a.kubeconfig(n.Name, "system:node:"+n.Name, "system:nodes", "/share/run"))
		must(a.issue(n.Name+"-serving", n.Name, "", n.Address, n.Name))
	}
	must(a.kubeconfig("proxy", "system:kube-proxy", "system:node-proxier", "/share/run"))
}
