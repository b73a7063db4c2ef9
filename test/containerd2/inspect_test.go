package containerd2

import (
	"encoding/json"
	"fmt"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// pidOf is the pid of a container's init, which CRI tells to who asks verbosely.
func (n *node) pidOf(c *container) int {
	n.t.Helper()
	r, err := n.ContainerStatus(n.ctx(), &cri.ContainerStatusRequest{ContainerId: c.id, Verbose: true})
	if err != nil {
		n.t.Fatal(err)
	}
	var info struct{ Pid int }
	if err := json.Unmarshal([]byte(r.Info["info"]), &info); err != nil || info.Pid == 0 {
		n.t.Fatalf("pid of a container: %v in %q", err, r.Info["info"])
	}
	return info.Pid
}

func procRoot(pid int) string { return fmt.Sprintf("/proc/%d/root", pid) }
