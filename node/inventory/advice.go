package inventory

import (
	"fmt"
	"strings"
)

// Move says what to set so that a container like this one is below another cgroup: parent is its
// path, slice its unit where systemd makes the cgroups, else "".
func (c *Container) Move(parent, slice string) string {
	to := parent
	if slice != "" {
		to = slice
	}
	if user, ok := strings.CutPrefix(c.Cgroup, "/user.slice/user-"); ok {
		uid, _, _ := strings.Cut(user, ".")
		return fmt.Sprintf("it is in user %s's session and can't leave it; run it as root, or limit the user: systemctl set-property user-%s.slice MemoryMax=", uid, uid)
	}
	switch {
	case c.Pod != "":
		return "set cgroupRoot in the kubelet's configuration as berth-node kubelet-config prints it"
	case c.Maker == Docker:
		return fmt.Sprintf(`set "cgroup-parent": %q in /etc/docker/daemon.json, and create it again`, to)
	case c.Maker == Podman:
		return "create it with --cgroup-parent " + to + " (Podman has no setting for all containers)"
	case c.Maker == Containerd && strings.HasPrefix(c.Unit(), "nerdctl-"):
		return "create it with nerdctl run --cgroup-parent " + to
	case c.Maker == Containerd && slice != "":
		return fmt.Sprintf("create it with ctr run --runc-systemd-cgroup --cgroup %s:ctr:%s", slice, c.ID)
	case c.Maker == Containerd:
		return fmt.Sprintf("create it with ctr run --cgroup %s/%s", parent, c.ID)
	case c.Maker == CRIO || c.Maker == Kubernetes:
		return fmt.Sprintf("name %s as cgroup_parent of its pod sandbox", to)
	case c.Maker == Berth:
		return "create it without a cgroupsPath, so that cgroup-parent in /etc/berth/berth.toml applies (berth-node apply sets it)"
	case (c.Maker == Runc || c.Maker == Crun) && slice != "":
		return fmt.Sprintf("set linux.cgroupsPath of its config.json to %s:%s:%s", slice, c.Maker, c.ID)
	case c.Maker == Runc || c.Maker == Crun:
		return fmt.Sprintf("set linux.cgroupsPath of its config.json to %s/%s", parent, c.ID)
	case c.Maker == Nspawn:
		return "start it with systemd-nspawn --slice=" + to
	case c.Maker == LXC:
		return fmt.Sprintf("set lxc.cgroup.dir = %s/%s in its configuration", strings.TrimPrefix(parent, "/"), c.ID)
	case c.Unit() != "" && slice != "":
		return fmt.Sprintf("set Slice=%s in %s, or let what starts the container name %s as its parent", to, c.Unit(), to)
	}
	return "let what starts it name " + to + " as its parent"
}
