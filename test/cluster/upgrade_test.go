package cluster

import (
	"strconv"
	"strings"
)

// The installer of another version replaces the programs under running pods: their shims take the
// new one in the process that they are, and of what a container says no line is lost.
func testUpgrade(p *Part) {
	const program = "/usr/local/bin/containerd-shim-berth-v2"
	for _, n := range p.Nodes {
		// Another version of the program, as far as the installer can see.
		p.Exec(p.T, n, "bash", "-c", "cp "+program+" /root/other && echo >> /root/other && mv /root/other "+program)
	}
	p.Pod("counting", `
containers:
- name: main
  image: IMAGE
  command: ["sh", "-c", "i=0; while :; do i=$((i+1)); echo $i; sleep 0.2; done"]
`)
	node := p.NodeOf("counting")
	shim := func() string {
		return strings.TrimSpace(p.Exec(p.T, node, "bash", "-c", `for pid in $(pgrep -f '^[^ ]*/containerd-shim-berth-v2 .*-id'); do echo $pid $(readlink /proc/$pid/exe); done`))
	}
	status := "{.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}"
	before, container := shim(), p.Get("pod/counting", status)
	p.Cluster.Kubectl(p.T, "--namespace", "kube-system", "rollout", "restart", "daemonset/berth-installer")
	p.Cluster.Kubectl(p.T, "--namespace", "kube-system", "rollout", "status", "daemonset/berth-installer", "--timeout", patience.String())
	p.Expect("the shim", shim(), before) // where it had kept its program, that would be "(deleted)"
	p.Expect("the program", p.Exec(p.T, node, "cmp", program, "/share/berth/containerd-shim-berth-v2"), "")
	p.Expect("the container", p.Get("pod/counting", status), container)
	p.Expect("exec", p.Sh("counting", "echo there"), "there")
	seen := len(strings.Fields(p.Kubectl("logs", "counting")))
	p.WaitIn(p.T, "further lines", func() (string, bool) {
		out, err := p.Try("logs", "counting")
		return out, err == nil && len(strings.Fields(out)) > seen
	})
	for i, line := range strings.Fields(p.Kubectl("logs", "counting")) {
		if line != strconv.Itoa(i+1) {
			p.T.Fatalf("line %d of the log is %q", i+1, line)
		}
	}
}
