package cluster

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// berth-node divides a node whose kubelet has the configuration that it prints: what the API says
// is allocatable is what its plan says, the limit of the pods is in place, and a change of that by
// others is mended.
func testReservations(p *Part) {
	node := p.Nodes[1]
	p.Exec(p.T, node, "dpkg", "--install", "/share/berth.deb")
	p.T.Cleanup(func() {
		p.Exec(p.T, node, "bash", "-c", `systemctl stop berth-node; berth-node undo; rm -f /etc/kubernetes/kubelet.conf.d/* /etc/berth-node/node.yaml
			systemctl restart kubelet`)
		p.allocatable(node, map[string]string{"memory": ""})
	})
	p.Exec(p.T, node, "bash", "-c", `mkdir -p /etc/berth-node
		cat > /etc/berth-node/node.yaml <<-'YAML'
			cgroup-root: /
			cgroups-per-qos: true
			system-reserved: {cpu: 200m, memory: 300Mi}
			kube-reserved: {cpu: 100m, memory: 200Mi}
			eviction-hard: {memory.available: 100Mi}
			pods-enforce: true
		YAML
		berth-node kubelet-config > /etc/kubernetes/kubelet.conf.d/20-berth.conf
		systemctl restart kubelet
		systemctl start berth-node`)
	var plan struct {
		Resources []struct{ Name, Allocatable, WorkloadsLimit string }
	}
	said := p.Exec(p.T, node, "berth-node", "plan", "--json")
	if err := json.Unmarshal([]byte(said), &plan); err != nil {
		p.T.Fatalf("berth-node plan: %v: %s", err, said)
	}
	want, limit := map[string]string{}, ""
	for _, r := range plan.Resources {
		switch r.Name {
		case "memory":
			limit = r.WorkloadsLimit
			fallthrough
		case "cpu", "ephemeral-storage":
			want[r.Name] = r.Allocatable
		}
	}
	if len(want) != 3 {
		p.T.Fatalf("berth-node plan: %s", said)
	}
	p.allocatable(node, want)

	p.limited(node, limit)
	p.Exec(p.T, node, "systemctl", "set-property", "--runtime", "kubepods.slice", "MemoryMax=infinity")
	p.limited(node, limit)
	p.Pod("placed", `
nodeSelector: {kubernetes.io/hostname: `+node.Name+`}
containers:
- name: main
  image: IMAGE
  command: ["sleep", "3600"]
`)
	p.UnderBerth("placed")
	id := strings.TrimPrefix(p.Get("pod/placed", "{.status.containerStatuses[0].containerID}"), "containerd://")
	var status struct {
		Containers []struct {
			ID      string
			Outside bool
		}
	}
	said = p.Exec(p.T, node, "berth-node", "status", "--json")
	if err := json.Unmarshal([]byte(said), &status); err != nil {
		p.T.Fatalf("berth-node status: %v: %s", err, said)
	}
	found := false
	for _, c := range status.Containers {
		found = found || c.ID == id && !c.Outside
	}
	if !found {
		p.T.Errorf("%s is no container of the workloads in berth-node status: %s", id, said)
	}
	out, err := p.TryExec(node, "berth-node", "doctor")
	if err != nil {
		p.T.Errorf("berth-node doctor: %v\n%s", err, out)
	}
}

// allocatable waits until the API has a node's amounts: those given, or any if one is "".
func (p *Part) allocatable(node *Node, want map[string]string) {
	p.T.Helper()
	p.WaitIn(p.T, node.Name+" with its amounts", func() (string, bool) {
		out, err := p.try("get", "node", node.Name, "-o", "jsonpath={.status.allocatable}")
		var now map[string]resource.Quantity
		if err != nil || json.Unmarshal([]byte(out), &now) != nil {
			return out, false
		}
		for name, amount := range want {
			if amount == "" {
				continue
			}
			if q, err := resource.ParseQuantity(amount); err != nil || q.Cmp(now[name]) != 0 {
				return out, false
			}
		}
		return out, true
	})
	p.Cluster.Kubectl(p.T, "wait", "--for=condition=Ready", "node/"+node.Name, "--timeout", patience.String())
}

// limited waits until the memory of a node's pods is limited to an amount.
func (p *Part) limited(node *Node, limit string) {
	p.T.Helper()
	want := resource.MustParse(limit)
	p.WaitIn(p.T, "kubepods.slice limited to "+limit, func() (string, bool) {
		out, err := p.TryExec(node, "cat", "/sys/fs/cgroup/kubepods.slice/memory.max")
		now, wrong := resource.ParseQuantity(strings.TrimSpace(out))
		return out, err == nil && wrong == nil && now.Cmp(want) == 0
	})
}
