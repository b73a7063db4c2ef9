package sandbox

import (
	"fmt"
	"maps"
	"path"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

const (
	// pauseRoot is the directory in the bundle for the root file system of a sandbox
	// that came without one. It is not "rootfs": containerd takes that for a mount
	// point, and fails to remove a bundle where something is in it.
	pauseRoot = "pod"
	// pauseFile is where the waiting program is in there.
	pauseFile = "/pause"
)

// pod is what is known of a sandbox that has no process of its own.
type pod struct {
	id      string
	netns   string // path of its network namespace, "" for none that exists
	userns  string // path of the user namespace that this belongs to, if not ours
	config  *wire.PodSandboxConfig
	options *options.Options
	// annotations are those of the request.
	annotations map[string]string
}

// spec is the config.json of a pod: the namespaces that its containers will
// join, a process that waits in them, and nothing that this process could do.
func (p *pod) spec() *specs.Spec {
	linux := p.config.Linux
	if linux == nil {
		linux = &wire.LinuxPodSandboxConfig{}
	}
	security := linux.SecurityContext
	if security == nil {
		security = &wire.PodSecurityContext{}
	}
	of := security.Namespaces
	if of == nil {
		of = &wire.PodNamespaces{}
	}
	s := &specs.Spec{
		Version: specs.Version,
		Process: &specs.Process{
			Args: []string{pauseFile}, Cwd: "/", NoNewPrivileges: true, Capabilities: &specs.LinuxCapabilities{},
			SelinuxLabel: label(security.SELinux),
		},
		Root:        &specs.Root{Path: pauseRoot, Readonly: true},
		Annotations: p.allAnnotations(),
		// The devices of a container are made in /dev, and sysctls set through /proc.
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "noexec", "mode=755", "size=64k"}},
		},
		Linux: &specs.Linux{
			CgroupsPath: p.cgroupsPath(linux.CgroupParent),
			Sysctl:      linux.Sysctls,
			Resources:   &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}},
			Namespaces:  []specs.LinuxNamespace{{Type: specs.MountNamespace}},
		},
	}
	unshare := func(kind specs.LinuxNamespaceType, path string) {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: kind, Path: path})
	}
	if of.Network != wire.NamespaceNode {
		unshare(specs.NetworkNamespace, p.netns)
		// A pod on the host's network has the host's name too, as CRI has it.
		unshare(specs.UTSNamespace, "")
		s.Hostname = p.config.Hostname
	}
	if of.Pid != wire.NamespaceNode {
		unshare(specs.PIDNamespace, "")
	}
	if of.IPC != wire.NamespaceNode {
		unshare(specs.IPCNamespace, "")
	}
	if u := of.User; p.hasUsers() {
		unshare(specs.UserNamespace, p.userns)
		s.Linux.UIDMappings, s.Linux.GIDMappings = mappings(u.UIDs), mappings(u.GIDs)
	}
	return s
}

// users is what CRI says of the pod's user namespace, nil for nothing.
func (p *pod) users() *wire.PodUserNamespace {
	l := p.config.Linux
	if l == nil || l.SecurityContext == nil || l.SecurityContext.Namespaces == nil {
		return nil
	}
	return l.SecurityContext.Namespaces.User
}

// hasUsers says whether the pod is to have a user namespace.
func (p *pod) hasUsers() bool {
	u := p.users()
	return u != nil && u.Mode == wire.NamespacePod
}

// check refuses what CRI wants refused: a user namespace is the pod's or the node's, not a
// container's (1) or that of another one (3), though other namespaces have these modes.
func (p *pod) check() error {
	if u := p.users(); u != nil && u.Mode != wire.NamespacePod && u.Mode != wire.NamespaceNode {
		return fmt.Errorf("user namespace mode %d of sandbox %q is not supported: POD (%d) and NODE (%d) are", u.Mode, p.id, wire.NamespacePod, wire.NamespaceNode)
	}
	return nil
}

// allAnnotations are the pod's, with those that hooks and tools know a sandbox by.
func (p *pod) allAnnotations() map[string]string {
	all := map[string]string{
		"io.kubernetes.cri.container-type": "sandbox",
		"io.kubernetes.cri.sandbox-id":     p.id,
	}
	if m := p.config.Metadata; m != nil {
		all["io.kubernetes.cri.sandbox-name"] = m.Name
		all["io.kubernetes.cri.sandbox-namespace"] = m.Namespace
		all["io.kubernetes.cri.sandbox-uid"] = m.UID
	}
	maps.Copy(all, p.config.Annotations)
	maps.Copy(all, p.annotations)
	return all
}

// cgroupsPath is the place below the parent that the kubelet has made.
func (p *pod) cgroupsPath(parent string) string {
	switch {
	case p.options.SystemdCgroup && strings.HasSuffix(parent, ".slice"):
		return path.Base(parent) + ":berth:" + p.id
	case p.options.SystemdCgroup, parent == "":
		return ""
	}
	return path.Join("/", parent, p.id)
}

func mappings(of []*wire.PodIDMapping) []specs.LinuxIDMapping {
	list := make([]specs.LinuxIDMapping, len(of))
	for i, m := range of {
		list[i] = specs.LinuxIDMapping{ContainerID: m.ContainerID, HostID: m.HostID, Size: m.Length}
	}
	return list
}

func label(s *wire.PodSELinux) string {
	if s == nil || s.Type == "" {
		return ""
	}
	return s.User + ":" + s.Role + ":" + s.Type + ":" + s.Level
}
